"""Every picture has a caption below it, and captions are numbered."""

import book
import captions

NO_CAPTION = "cell 1: a picture without a caption below it"
CAPTION = "**Figure.** Each row is a token that looks around."


def text(source):
    return book.nbformat.v4.new_markdown_cell(source)


def code(*images, kind="image/png", html=False):
    """Returns a code cell that shows images, or a number where none is."""
    new = book.nbformat.v4
    cell = new.new_code_cell("draw()")
    for image in images:
        data = {"text/plain": "a picture", kind: image}
        if html:
            data["text/html"] = "<div></div>"
        cell.outputs.append(new.new_output("display_data", data))
    if not images:
        cell.outputs.append(new.new_output("stream", text="1\n"))
    return cell


def faults(*cells):
    return captions.faults(book.nbformat.v4.new_notebook(cells=list(cells)))


def test_captions_of_the_chapter_are_numbered(chapter, notebook):
    before = book.twin_text(notebook)
    captions.refresh(notebook, chapter.name)
    assert book.twin_text(notebook) == before, "run `make links`"


def test_pictures_of_the_chapter_have_captions(chapter, notebook):
    assert captions.faults(notebook) == []


def test_chapters_show_pictures():
    """What finds them is not blind."""
    notebooks = [book.read_notebook(one.path) for one in book.everything()]
    shown = [
        any(map(captions.has_picture, book.code_cells(notebook)))
        for notebook in notebooks
    ]
    assert sum(shown) > 10


def test_refresh_numbers_captions_in_order_and_once():
    cells = [
        text("# 20 Attention"),
        text(CAPTION),
        text("A **Figure.** inside a sentence."),
        text(CAPTION.replace("Figure.", "Figure 20.7.")),
    ]
    notebook = book.nbformat.v4.new_notebook(cells=cells)
    captions.refresh(notebook, "20_attention")
    once = [cell.source for cell in notebook.cells]
    assert once[1] == CAPTION.replace("Figure.", "Figure 20.1.")
    assert once[2] == "A **Figure.** inside a sentence."
    assert once[3] == CAPTION.replace("Figure.", "Figure 20.2.")
    captions.refresh(notebook, "20_attention")
    assert [cell.source for cell in notebook.cells] == once


def test_a_chapter_below_10_has_no_leading_zero():
    notebook = book.nbformat.v4.new_notebook(cells=[text(CAPTION)])
    captions.refresh(notebook, "01_keras_in_ten_minutes")
    assert notebook.cells[0].source.startswith("**Figure 1.1.** ")


def test_a_lab_counts_its_own_figures():
    cells = [text(CAPTION), text(CAPTION.replace("Figure.", "Figure 20.7."))]
    notebook = book.nbformat.v4.new_notebook(cells=cells)
    for _ in range(2):
        captions.refresh(notebook, "labs/20_why_many_heads")
        starts = [cell.source.partition("**.")[0] for cell in cells]
        assert [s.split(" Each")[0] for s in starts] == [
            "**Figure 1.**",
            "**Figure 2.**",
        ]
    assert captions.is_caption(cells[0])


def test_a_lab_may_name_figures_of_chapters_and_papers():
    seen = "See Figure 1, Figure 20.3 and figure 7 of the paper."
    cells = code("a"), text("**Figure 1.** A."), text(seen)
    assert faults(*cells) == []
    lost = text("See Figure 2.")
    assert faults(*cells, lost) == ["no Figure 2 in this notebook"]


def test_a_picture_with_a_caption_has_no_fault():
    for picture in (
        code("abc"),
        code("abc", html=True),  # a viewer, with a picture inside
        code("<svg>", kind="image/svg+xml"),
        code("abc", "def"),  # two pictures, one caption
    ):
        assert faults(code(), picture, text(CAPTION), code()) == []


def test_each_fault_is_seen():
    for cells, fault in (
        ((code("a"), text("So.")), NO_CAPTION),
        ((code("a"),), NO_CAPTION),
        ((code("a", html=True), code()), NO_CAPTION),
        ((code(), text(CAPTION)), "cell 2: a caption without a picture"),
        ((text(CAPTION),), "cell 1: a caption without a picture"),
        (
            (code("a"), text(CAPTION), text(CAPTION)),
            "cell 3: a caption without a picture",
        ),
        ((code("a", "a"), text(CAPTION)), "cell 1: the same picture twice"),
        (
            (code("a"), text("**Figure 2.1.** A."), text("See Figure 2.3.")),
            "no Figure 2.3 in this notebook",
        ),
    ):
        assert faults(*cells) == [fault]


def test_figures_of_other_texts_may_be_named():
    cells = code("a"), text("**Figure 2.1.** A."), text("See Figure 3.1.")
    assert faults(*cells) == []
