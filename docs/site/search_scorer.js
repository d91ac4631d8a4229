// How search weighs what it finds: a public name that was typed in full, then
// titles of chapters, other titles, text, names of code; exercises come later.
var Scorer = {
  objNameMatch: 6,
  objPartialMatch: 3,
  objPrio: { 0: 3, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score([page, title, , , score, , kind]) {
    const typed = new URLSearchParams(location.search).get("q");
    const name = typed.trim().toLowerCase().replace(/^(bb|bertbook)\./, "");
    const found = title.toLowerCase();
    if (kind === "object" && found === `bertbook.${name}`) return 30;
    if (found === name) return 30;
    if (kind === "title" && /^\d\d [^>]*$/.test(title)) return score + 10;
    return /(exercises|solutions)\//.test(page) ? score - 1 : score;
  },
};

// The book writes bb.finetune, the reference bertbook.finetune.
var splitQuery = (query) =>
  query.replace(/\bbb\./g, "bertbook.").match(/[\p{L}\p{N}_]+/gu) || [];
