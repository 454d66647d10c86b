"""The files of `deploy/` agree with each other: what one says of the bot, the others say too."""

import re
from pathlib import Path

DEPLOY = Path(__file__).parents[1] / "deploy"
OF_ONE = {
    "ReadWritePaths=/opt/discoclaw/data",
    "ExecStart=/opt/discoclaw/.venv/bin/discoclaw run",
}
OF_MANY = {
    "Environment=DISCOCLAW_DATA_DIR=%S/discoclaw/%i",
    "StateDirectory=discoclaw/%i",
    "StateDirectoryMode=0700",
    "ExecStart=/opt/discoclaw/.venv/bin/discoclaw run --shards %i",
}


def service(name: str) -> list[str]:
    """The lines of a unit's [Service] section, without comments."""
    section = (DEPLOY / name).read_text(encoding="utf-8").partition("[Service]\n")[2].partition("\n[")[0]
    return [line for line in section.splitlines() if line and not line.startswith("#")]


def test_systemd_confines_one_process_and_one_of_many_alike() -> None:
    one, many = service("discoclaw.service"), service("discoclaw@.service")
    assert set(one) >= OF_ONE and set(many) >= OF_MANY
    assert [line for line in one if line not in OF_ONE] == [line for line in many if line not in OF_MANY]


def test_the_image_gets_no_file_with_secrets() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[0] == "*"  # nothing but what is named
    assert ignored.index("**/.env") > ignored.index("!deploy")


def pins(name: str) -> dict[str, str]:
    """The names and versions that a set of requirements pins."""
    text = (DEPLOY.parent / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert "://" not in text  # where a package comes from is the business of whoever installs it
    pinned = re.split(r"^(?=[a-z])", text, flags=re.M)[1:]
    assert all("--hash=sha256:" in one for one in pinned)
    return dict(one.split()[0].split("==", 1) for one in pinned)


def test_the_bot_the_demo_and_the_tests_have_the_same_versions_and_no_more_than_they_need() -> None:
    run, demo, dev = pins("run"), pins("demo"), pins("dev")
    assert run.items() < demo.items() < dev.items()
    assert not {"simcord", "pytest", "mypy"} & run.keys()
    assert "simcord" in demo and not {"pytest", "mypy"} & demo.keys()


def test_everything_in_the_image_is_checked_by_its_hash() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    installs = [one for one in re.sub(r"\\\n", " ", dockerfile).split("&&") if " install --" in one]
    pip = [one for one in installs if "/pip install" in one]
    assert ["--require-hashes -r requirements/run.txt" in one or "--no-deps" in one for one in pip] == [
        True
    ] * 2
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert "!requirements/run.txt" in ignored
