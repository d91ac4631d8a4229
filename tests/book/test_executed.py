"""A notebook was run from top to bottom and holds nothing of its machine."""

import ast
import re

import nbformat

import book
import first_cell

LONGEST_CELL = 20  # lines
LARGEST_FILE = 1_000_000  # bytes
TIMINGS = {"execution", "ExecuteTime", "executionInfo", "papermill"}
UNCOMPARED = {"nbval-ignore-output", "nbval-skip"}
REASON = re.compile(r"^# Not (?:compared|run): \w+ \w+", re.MULTILINE)
MACHINE = re.compile(
    r"(?<![\w.])/(?:home|Users|root|tmp|work|var|private|content|opt)/|site-packages"
    r"|[A-Z]:\\|0x[0-9a-f]{6,}"
)
PICTURE = re.compile(r"data:image/[a-z+]+;base64,[A-Za-z0-9+/=]+")


def faults(notebook):
    """Returns what is wrong with the state of a notebook, in words."""
    found = []
    if "widgets" in notebook.metadata:
        found.append("`metadata.widgets` is there")
    cells = book.code_cells(notebook)
    for number, cell in enumerate(cells, start=1):
        where = f"code cell {number} ({cell.source.split(chr(10))[0]!r})"
        if cell.execution_count != number:
            found.append(f"{where}: its count is {cell.execution_count}")
        found += [f"{where}: {fault}" for fault in faults_of_cell(cell)]
    return found


def faults_of_cell(cell):
    found = [f"timing in {key}" for key in TIMINGS & set(cell.metadata)]
    found += faults_of_folding(cell)
    for output in cell.outputs:
        found += faults_of_output(output)
    if first_cell.is_first(cell):  # test_badges.py looks at it
        return found + faults_of_tags(cell)
    lines = len(cell.source.split("\n"))
    given = book.is_quote(cell) or "your-turn" in cell.metadata.get("tags", [])
    if lines > LONGEST_CELL and not given:
        found.append(f"{lines} lines, more than {LONGEST_CELL}")
    if MACHINE.search(cell.source):
        found.append(f"a path or address, {MACHINE.search(cell.source)[0]!r}")
    return found + faults_of_tags(cell)


def faults_of_folding(cell):
    """A cell is folded in JupyterLab and in Colab where its tag says so."""
    folded = "hide-input" in cell.metadata.get("tags", [])
    jupyter = cell.metadata.get("jupyter", {})
    if jupyter.get("source_hidden", False) is not folded:
        return ["`source_hidden` goes with the tag hide-input"]
    if (cell.metadata.get("cellView") == "form") is not folded:
        return ["`cellView` goes with the tag hide-input"]
    if jupyter.get("outputs_hidden"):
        return ["its outputs are hidden"]
    return []


def faults_of_output(output):
    if output.output_type == "error":
        return [f"an error, {output.ename}"]
    if output.get("name") == "stderr":
        return [f"stderr, {output.text[:60]!r}"]
    found = []
    for kind, text in texts_of(output):
        if "widget" in kind:
            found.append("a widget")
        if match := MACHINE.search(PICTURE.sub("", text)):
            found.append(f"a path or address in {kind}, {match[0]!r}")
    return found


def texts_of(output):
    yield "text", output.get("text", "")
    for kind, value in output.get("data", {}).items():
        yield kind, value if "image/" not in kind else ""


def faults_of_tags(cell):
    found = []
    tags = set(cell.metadata.get("tags", []))
    if tags & UNCOMPARED and not REASON.search(cell.source):
        found.append("no reason, `# Not compared: ...` or `# Not run: ...`")
    if "raises-exception" in tags:
        found.append("raises-exception: catch the error and print it")
    if re.search(r"^# *(?:NBVAL|PYTEST_VALIDATE)_", cell.source, re.MULTILINE):
        found.append("a marker in a comment: use the tag")
    return found


def test_notebook_was_run_and_is_clean(notebook):
    assert faults(notebook) == []


def test_the_first_output_names_this_version(notebook):
    assert first_cell.outdated(notebook) is None, "run `make badges`"


def alt_texts(source):
    """Returns the alt texts that a cell gives as plain strings."""
    tree = ast.parse(book.without_magics(source))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.keyword)]
    values = [call.value for call in calls if call.arg == "alt"]
    return [v.value for v in values if isinstance(v, ast.Constant) and v.value]


def test_stored_alt_texts_are_those_of_the_source(notebook):
    for cell in book.code_cells(notebook):
        stored = "".join(
            output.get("data", {}).get("text/plain", "")
            for output in cell.outputs
        )
        for text in alt_texts(cell.source):
            assert text in stored, "build the chapter again"


def test_notebook_is_valid_and_small(chapter, notebook):
    nbformat.validate(notebook)
    assert chapter.path.stat().st_size < LARGEST_FILE


def example():
    new = nbformat.v4
    cells = [new.new_code_cell("1 + 1"), new.new_code_cell("print(2)")]
    cells[0].outputs = [
        new.new_output("execute_result", {"text/plain": "2"}, execution_count=1)
    ]
    cells[1].outputs = [new.new_output("stream", text="2\n")]
    for number, cell in enumerate(cells, start=1):
        cell.execution_count = number
    return new.new_notebook(cells=cells)


def not_run(notebook):
    notebook.cells[1].execution_count = None


def out_of_order(notebook):
    notebook.cells[0].execution_count = 3


def stderr(notebook):
    notebook.cells[1].outputs[0].name = "stderr"


def error(notebook):
    output = nbformat.v4.new_output("error", ename="ValueError", evalue="")
    notebook.cells[1].outputs = [output]


def timing(notebook):
    notebook.cells[0].metadata["execution"] = {"iopub.execute_input": "now"}


def widget(notebook):
    notebook.metadata["widgets"] = {}


def widget_view(notebook):
    data = {"application/vnd.jupyter.widget-view+json": "{}"}
    notebook.cells[0].outputs[0].data = data


def path_in_output(notebook):
    notebook.cells[1].outputs[0].text = "saved to /tmp/tmp1a2b/model\n"


def path_in_source(notebook):
    notebook.cells[1].source = "open('/home/ann/x.txt')"


def address(notebook):
    notebook.cells[0].outputs[0].data["text/plain"] = "<A at 0x7f12ab34>"


def long_cell(notebook):
    notebook.cells[1].source = "\n".join(["x = 1"] * 21)


def ignored_without_reason(notebook):
    notebook.cells[1].metadata["tags"] = ["nbval-ignore-output"]


def skipped_without_reason(notebook):
    notebook.cells[1].metadata["tags"] = ["nbval-skip"]


def marker_comment(notebook):
    notebook.cells[1].source = "# NBVAL_SKIP\nprint(2)"


def expected_error(notebook):
    notebook.cells[1].metadata["tags"] = ["raises-exception"]


def folded_without_tag(notebook):
    notebook.cells[1].metadata["jupyter"] = {"source_hidden": True}


def form_without_tag(notebook):
    notebook.cells[1].metadata["cellView"] = "form"


def tag_without_fold(notebook):
    notebook.cells[1].metadata["tags"] = ["hide-input"]


def tag_without_form(notebook):
    tag_without_fold(notebook)
    folded_without_tag(notebook)


def hidden_output(notebook):
    notebook.cells[1].metadata["jupyter"] = {"outputs_hidden": True}


def test_a_clean_notebook_has_no_fault():
    assert faults(example()) == []


def test_each_fault_is_seen():
    for plant in (
        not_run,
        out_of_order,
        stderr,
        error,
        timing,
        widget,
        widget_view,
        path_in_output,
        path_in_source,
        address,
        long_cell,
        ignored_without_reason,
        skipped_without_reason,
        marker_comment,
        expected_error,
        folded_without_tag,
        form_without_tag,
        tag_without_fold,
        tag_without_form,
        hidden_output,
    ):
        notebook = example()
        plant(notebook)
        assert len(faults(notebook)) == 1


def test_a_reason_is_enough():
    cell = nbformat.v4.new_code_cell(
        first_cell.SOURCE, metadata={"tags": first_cell.TAGS}
    )
    assert faults_of_tags(cell) == []


def test_a_quote_may_be_long():
    for start in book.QUOTES:
        lines = [f"{start}bertbook.x.y", *["x = 1"] * 30]
        cell = nbformat.v4.new_code_cell("\n".join(lines))
        assert faults_of_cell(cell) == []


def test_writing_folds_what_is_tagged_and_nothing_else(tmp_path):
    notebook = example()
    folded_without_tag(notebook)
    notebook.cells[0].metadata |= {"tags": ["hide-input"], "collapsed": True}
    book.write_notebook(notebook, tmp_path / "00_x.ipynb")
    one, other = book.read_notebook(tmp_path / "00_x.ipynb").cells
    assert one.metadata == {
        "tags": ["hide-input"],
        "jupyter": {"source_hidden": True},
        "cellView": "form",
    }
    assert other.metadata == {}
    assert faults_of_folding(one) == faults_of_folding(other) == []
    assert ":tags: [hide-input]" in book.twin_text(notebook)
    assert "source_hidden" not in book.twin_text(notebook)
