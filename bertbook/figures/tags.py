"""Pictures of tags: which pieces of a word carry its tag."""

from bertbook.figures.canvas import FAINT, Sheet, box_width, flow
from bertbook.figures.style import Picture, check_labels, counted, styled
from bertbook.tasks.tags import STRATEGIES, TagWindow, speaking_tokens
from bertbook.text.bio import split_tag

KIND_COLORS = {
    "": "muted",  # the color of O
    "PER": "token",
    "ORG": "segment",
    "LOC": "position",
    "MISC": "value",
}
OTHER = "output"  # the color of any other type
SIZE = 8.0  # points, the type of a piece
CRACK = 0.04  # inches between two pieces
LEFT = 0.65  # inches beside the names of the rows
# How far below the top of a line each of its rows stands, and the next line.
ROWS = {"word": 0.22, "tag": 0.5, "piece": 0.84}
ROWS |= {name: 1.24 + 0.29 * i for i, name in enumerate(STRATEGIES)}
TALL = max(ROWS.values()) + 0.3


@styled
def tag_alignment(words, pieces, tags, alt=None):
    """Draws words, their pieces, and which pieces carry the tag.

    Args:
        words: W words.
        pieces: The pieces of each word, as texts, one at least.
        tags: W BIO tags.
        alt: Alternative text; made from the words where it is None.

    Returns:
        A `Picture`.

    Raises:
        ValueError: There is no word, the three differ in length, a word has
            no piece, or a tag is not BIO.
    """
    pieces, tags = _check(words, pieces, tags)
    columns = list(zip(words, pieces, tags, strict=True))
    cells = [
        [box_width((part, tag), SIZE) + CRACK for part in parts]
        for _, parts, tag in columns
    ]
    widths = [
        max(box_width((word,), SIZE) + CRACK, sum(row))
        for word, row in zip(words, cells, strict=True)
    ]
    places, lines = flow(widths, left=LEFT)
    sheet = Sheet(TALL * lines - 0.1)
    tops = [TALL * (lines - line) - 0.1 for line in range(lines)]
    for top in tops:
        for name, y in ROWS.items():
            sheet.label(0.1, top - y, name, ha="left")
    for number, (line, x, width) in enumerate(places):
        scale = width / sum(cells[number])
        row = [cell * scale for cell in cells[number]]
        place = x - width / 2, tops[line]
        _draw_word(sheet, place, row, *columns[number])
    said = "; ".join(f"{w}, {tag}, in {' '.join(p)}" for w, p, tag in columns)
    text = (
        f"{counted(len(words), 'word')} in "
        f"{counted(sum(map(len, pieces)), 'piece')}: {said}. Rows below show "
        f"which pieces carry the tag: {', '.join(STRATEGIES)}."
    )
    return Picture(sheet.figure, alt or text)


def _check(words, pieces, tags):
    """Returns the pieces and the tags of words as lists."""
    if isinstance(words, str) or not len(words):
        raise ValueError(
            f"`words` must be a list of at least one word. Received: {words!r}."
        )
    pieces = check_labels(pieces, len(words), "pieces")
    tags = check_labels(tags, len(words), "tags")
    for number, (parts, tag) in enumerate(zip(pieces, tags, strict=True)):
        split_tag(tag, number)
        if isinstance(parts, str) or not len(parts):
            raise ValueError(
                f"`pieces[{number}]` must be a list of at least one piece. "
                f"Received: {parts!r}."
            )
    return pieces, tags


def _carriers(count):
    """Returns which of a word's pieces carry its tag, by strategy."""
    window = TagWindow([], [], [0] * count, range(1))
    return {name: speaking_tokens(window, name) for name in STRATEGIES}


def _draw_word(sheet, place, row, word, parts, tag):
    """Draws one word, and its pieces below it.

    Args:
        sheet: Where to draw.
        place: Its left end, and the top of its line.
        row: Inches of each piece.
        word: The word.
        parts: Its pieces.
        tag: Its tag.
    """
    left, top = place
    color = KIND_COLORS.get(split_tag(tag)[1], OTHER)
    how = {"size": SIZE, "va": "center_baseline"}

    def box(x, name, width, text, strength):
        tall = 0.25 if name in STRATEGIES else 0.27
        y = top - ROWS[name]
        sheet.box(x, y, width - CRACK, tall, text, color, strength, **how)

    carriers = _carriers(len(parts))
    middle = left + sum(row) / 2
    box(middle, "word", sum(row), word, 0.25)
    bold = {"size": SIZE, "weight": "bold", "room": sum(row)}
    sheet.label(middle, top - ROWS["tag"], tag, **bold)
    for i, (part, width) in enumerate(zip(parts, row, strict=True)):
        x = left + sum(row[:i]) + width / 2
        box(x, "piece", width, part, 0.1)
        for name, carries in carriers.items():
            if carries[i]:
                box(x, name, width, tag, 0.45)
            else:
                sheet.label(x, top - ROWS[name], "·", ink=FAINT)
