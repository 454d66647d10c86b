"""What the documents say is measured: neither more nor less than what is."""

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.app.conftest import Start
from tests.app.test_health import ANYWHERE, get

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"\b(?:discoclaw|process)_[a-z_]+")
DASHBOARD, PAGE = ROOT / "deploy/grafana.json", ROOT / "docs/admins/monitoring.md"


async def exported(start: Start) -> tuple[dict[str, str], set[str]]:
    """The families with their types, and the names under which Prometheus stores them."""
    async with start(metrics=ANYWHERE) as world:
        _, body = await get(world, "/metrics")
    families = {one.name: one.type for one in text_string_to_metric_families(body)}
    stored = set[str]()
    for name, kind in families.items():
        ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(kind, [""])
        stored |= {f"{name}{end}" for end in ends}
    return families, stored


class TestTheDashboard:
    async def test_uses_only_metrics_that_exist_and_all_of_ours(self, start: Start) -> None:
        _, stored = await exported(start)
        panels = json.loads(DASHBOARD.read_text())["panels"]
        asked = {one["expr"] for panel in panels for one in panel.get("targets", ())}
        used = {name for one in asked for name in NAME.findall(one)}
        assert used - stored == set()
        ours = {re.sub("_(bucket|sum|count)$", "", one) for one in stored if one.startswith("discoclaw_")}
        assert ours - {re.sub("_bucket$", "", one) for one in used} == set()

    def test_lays_its_panels_beside_each_other(self) -> None:
        taken = set[tuple[int, int]]()
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            at = panel["gridPos"]
            cells = {
                (x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
            }
            assert max(x for x, _ in cells) < 24
            assert not cells & taken
            taken |= cells


class TestThePage:
    async def test_explains_each_metric_with_its_type_and_labels(self, start: Start) -> None:
        families, stored = await exported(start)
        rows = re.findall(r"^\| `(discoclaw_\w+)` \| (\w+) \|", PAGE.read_text(), re.MULTILINE)
        listed = {re.sub("_total$", "", name): kind for name, kind in rows}
        assert listed == {name: kind for name, kind in families.items() if name.startswith("discoclaw_")}
        alerts = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
        used = {name for one in alerts for name in NAME.findall(one)}
        assert used - stored == set()
