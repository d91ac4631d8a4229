// How search weighs what it finds: titles of chapters before names of code.
var Scorer = {
  objNameMatch: 6,
  objPartialMatch: 3,
  objPrio: { 0: 3, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
