"""The files of `deploy/` agree with each other: what one says of the bot, the others say too."""

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
