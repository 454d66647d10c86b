"""A history as a picture: decoded again, and looked at for size, lanes and marks."""

import io

from hypothesis import given
from PIL import Image

from discoclaw.core.history import History
from discoclaw.show.graph import Graph
from discoclaw.show.picture import BACKGROUND, COLOURS, MOST_ROWS, WIDTH, colour_of, other_font, png
from tests.examples import FEW
from tests.show.histories import NAMES, NASTY, Story, histories, long_story, told
from tests.tables import each_row


def decoded(history: History, title: str = "Memory of Ann") -> Image.Image:
    """The picture, within the bounds that every picture keeps."""
    content = png(history, title=title)
    assert len(content) < 1_000_000
    picture = Image.open(io.BytesIO(content))
    picture.load()
    assert picture.format == "PNG"
    assert picture.mode == "RGB"
    assert picture.width == WIDTH <= 1600
    assert picture.height <= 2000
    return picture


def colours(picture: Image.Image) -> dict[object, int]:
    """How many pixels have which colour."""
    return {colour: number for number, colour in picture.getcolors(picture.width * picture.height) or ()}


class TestAPicture:
    def test_every_lane_has_its_colour_and_no_other_colour_is_there(self) -> None:
        found = colours(decoded(told().history))
        lanes = len(Graph(told().history).lanes)
        assert all(found.get(colour_of(lane), 0) > 300 for lane in range(lanes))
        assert not [colour for colour in COLOURS[lanes:] if found.get(colour, 0) > 20]
        assert found[BACKGROUND] > 100_000

    def test_dots_stand_on_their_lanes(self) -> None:
        history = told().history
        picture = decoded(history)
        for number, row in enumerate(Graph(history).rows(MOST_ROWS)):
            x, y = 36 + 34 * row.column, 116 + 44 * number + 22
            expected = colour_of(Graph(history).lane_of[row.commit.id])
            assert picture.getpixel((x + 6, y)) == expected

    def test_a_merge_is_hollow_and_head_has_a_ring(self) -> None:
        history = told().history
        picture = decoded(history)
        for number, row in enumerate(Graph(history).rows(MOST_ROWS)):
            x, y = 36 + 34 * row.column, 116 + 44 * number + 22
            merged = "merged" in row.commit.metadata
            assert (picture.getpixel((x, y)) == BACKGROUND) == merged
            ring = picture.getpixel((x + 12, y))
            assert (ring == (222, 224, 228)) == (row.commit.id == Graph(history).head())

    def test_the_same_history_gives_the_same_bytes(self) -> None:
        assert png(told().history, title="x") == png(told().history, title="x")

    def test_another_title_message_or_commit_gives_another_picture(self) -> None:
        story = told()
        pictures = {png(story.history, title="x"), png(story.history, title="y")}
        story.say("User has a fish.")
        pictures.add(png(story.history, title="x"))
        story.switch("main")
        pictures.add(png(story.history, title="x"))
        assert len(pictures) == 4

    def test_no_commits_is_a_picture_too(self) -> None:
        assert decoded(History()).height < 300

    def test_a_long_history_is_cut_to_its_newest_commits_and_says_so(self) -> None:
        whole, longer = decoded(long_story(MOST_ROWS).history), decoded(long_story(MOST_ROWS + 1).history)
        assert longer.height == whole.height + 44
        assert decoded(long_story(900).history).size == longer.size

    def test_fifty_lanes_have_room(self) -> None:
        story = Story()
        story.say("a")
        for number in range(49):
            story.fork(f"persona-{number}")
            story.say("b", f"persona-{number}")
        for number in range(15):
            story.merge(f"persona-{number}")
        found = colours(decoded(story.history))
        assert all(found.get(colour, 0) > 100 for colour in COLOURS)

    @each_row("nasty", [*NASTY, "W" * 5000, "雪" * 500])
    def test_any_words_can_be_drawn(self, nasty: str) -> None:
        story = Story()
        story.say("a", why=nasty)
        decoded(story.history, nasty)

    def test_names_of_any_script_can_be_drawn(self) -> None:
        story = Story()
        for name in NAMES:
            story.fork(name)
            story.say("a", name)
        decoded(story.history)

    def test_a_machine_without_other_fonts_draws_with_the_one_there_is(self) -> None:
        font = other_font(20, ("no such font.ttf",))
        assert font.getlength("Ann") > 0
        assert font.getlength("кот") > 0

    @FEW
    @given(histories())
    def test_any_history_can_be_drawn(self, history: History) -> None:
        decoded(history)
