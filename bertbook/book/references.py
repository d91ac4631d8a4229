"""References: five texts that the book reads closely, and all that it cites."""

from typing import NamedTuple

# Keys of the five texts.
ENCODER, FORWARD, LAYER, DECODER, NOTES = (
    "encoder",
    "forward pass",
    "encoder layer",
    "decoder",
    "lecture notes",
)


class Text(NamedTuple):
    """One of the five texts; empty where it names no author or year."""

    authors: str
    title: str
    year: str
    kind: str


SOURCES = {
    ENCODER: Text(
        "Romero Calvo and Ingham",
        "Dissecting BERT Part 1: The Encoder",
        "2018",
        "article",
    ),
    FORWARD: Text("", "BERT-base Transformer forward pass", "", "formulas"),
    LAYER: Text("", "BERT Encoder Layer", "", "course page with code"),
    DECODER: Text(
        "Romero Calvo and Ingham",
        "Dissecting BERT Appendix: The Decoder",
        "2018",
        "article",
    ),
    NOTES: Text(
        "Fahim and Khan",
        "Lecture notes on BERT",
        "2021",
        "University of Dhaka; the title page says `Topic: BERT`",
    ),
}


def cite(key: str) -> str:
    """Returns author, where one is named, and title of one of the texts."""
    text = SOURCES[key]
    return ", ".join(part for part in (text.authors, text.title) if part)


class Reference(NamedTuple):
    """A published work.

    Attributes:
        authors: As the book cites them, or all of them.
        year: Of the version that is cited.
        title: Without a final period.
        where: Journal, meeting, or arXiv number.
        first: Month in which it appeared first, where the order matters.
        cited_by: Keys of the texts in `SOURCES` that refer to it.
        chapters: Where the book treats its subject.
    """

    authors: str
    year: int
    title: str
    where: str
    first: str = ""
    cited_by: tuple[str, ...] = ()
    chapters: tuple[str, ...] = ()


ARTICLES = ENCODER, DECODER
# Each work that one of the five texts refers to.
OF_THE_SOURCES = (
    Reference(
        "Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser and "
        "Polosukhin", 2017, "Attention Is All You Need", "arXiv:1706.03762",
        "2017-06", (ENCODER, LAYER, DECODER, NOTES),
        ("20_attention", "21_several_heads", "22_block", "60_decoder"),
    ),
    Reference(
        "Devlin, Chang, Lee and Toutanova", 2019, "BERT: Pre-training of Deep "
        "Bidirectional Transformers for Language Understanding",
        "arXiv:1810.04805", "2018-10", (*ARTICLES, NOTES),
        ("labs/23_sizes", "30_masked_words", "31_next_sentence",
         "32_pretraining", "40_one_sentence"),
    ),
    Reference(
        "Rush, Nguyen and Klein", 2018, "The Annotated Transformer",
        "nlp.seas.harvard.edu", "", ARTICLES, ("60_decoder", "61_translation"),
    ),
    Reference(
        "Howard and Ruder", 2018, "Universal Language Model Fine-tuning for "
        "Text Classification", "arXiv:1801.06146", "2018-01",
        (*ARTICLES, NOTES), ("40_one_sentence", "62_lineage"),
    ),
    Reference(
        "Radford, Narasimhan, Salimans and Sutskever", 2018, "Improving "
        "Language Understanding by Generative Pre-Training", "OpenAI",
        "2018-06", ARTICLES, ("62_lineage",),
    ),
    Reference(
        "Radford, Wu, Child, Luan, Amodei and Sutskever", 2019, "Language "
        "Models are Unsupervised Multitask Learners", "OpenAI", "2019-02",
        (NOTES,), ("62_lineage",),
    ),
    Reference(
        "Peters, Neumann, Iyyer, Gardner, Clark, Lee and Zettlemoyer", 2018,
        "Deep contextualized word representations", "arXiv:1802.05365",
        "2018-02", (NOTES,), ("62_lineage",),
    ),
    Reference(
        "Schuster and Paliwal", 1997, "Bidirectional Recurrent Neural "
        "Networks", "IEEE Transactions on Signal Processing 45", "",
        (NOTES,), ("62_lineage",),
    ),
    Reference(
        "Wu et al.", 2016, "Google's Neural Machine Translation System: "
        "Bridging the Gap between Human and Machine Translation",
        "arXiv:1609.08144", "2016-09", (NOTES,), ("11_vocabulary",),
    ),
)  # fmt: skip
# What chapters and docstrings cite beyond those, by name.
_FURTHER = """
Dai and Le | 2015 | arXiv:1511.01432
    Semi-supervised Sequence Learning
Donahue et al. | 2014 | arXiv:1310.1531
    DeCAF: A Deep Convolutional Activation Feature for Generic Visual
    Recognition
Freitag et al. | 2022 | WMT
    Results of WMT22 Metrics Shared Task: Stop Using BLEU - Neural Metrics Are
    Better and More Robust
Kneser and Ney | 1995 | ICASSP
    Improved Backing-off for M-gram Language Modeling
Guo, Pleiss, Sun and Weinberger | 2017 | arXiv:1706.04599
    On Calibration of Modern Neural Networks
Krizhevsky, Sutskever and Hinton | 2012 | NIPS
    ImageNet Classification with Deep Convolutional Neural Networks
McCann, Bradbury, Xiong and Socher | 2017 | arXiv:1708.00107
    Learned in Translation: Contextualized Word Vectors
Mikolov, Chen, Corrado and Dean | 2013 | arXiv:1301.3781
    Efficient Estimation of Word Representations in Vector Space
Northcutt, Jiang and Chuang | 2021 | arXiv:1911.00068
    Confident Learning: Estimating Uncertainty in Dataset Labels
Pennington, Socher and Manning | 2014 | EMNLP
    GloVe: Global Vectors for Word Representation
Rei, Stewart, Farinha and Lavie | 2020 | arXiv:2009.09025
    COMET: A Neural Framework for MT Evaluation
Sennrich and Zhang | 2019 | arXiv:1905.11901
    Revisiting Low-Resource Neural Machine Translation: A Case Study
Ács, Kádár and Kornai | 2021 | arXiv:2102.10864
    Subword Pooling Makes a Difference
Adhikari, Ram, Tang and Lin | 2019 | arXiv:1904.08398
    DocBERT: BERT for Document Classification
Akbik, Blythe and Vollgraf | 2018 | COLING
    Contextual String Embeddings for Sequence Labeling
Alsentzer et al. | 2019 | arXiv:1904.03323
    Publicly Available Clinical BERT Embeddings
Ba, Kiros and Hinton | 2016 | arXiv:1607.06450
    Layer Normalization
Bahdanau, Cho and Bengio | 2015 | arXiv:1409.0473
    Neural Machine Translation by Jointly Learning to Align and Translate
Belinkov | 2022 | Computational Linguistics 48
    Probing Classifiers: Promises, Shortcomings, and Advances
Belrose et al. | 2023 | arXiv:2303.08112
    Eliciting Latent Predictions from Transformers with the Tuned Lens
Belrose et al. | 2023 | arXiv:2306.03819
    LEACE: Perfect linear concept erasure in closed form
Beltagy, Lo and Cohan | 2019 | arXiv:1903.10676
    SciBERT: A Pretrained Language Model for Scientific Text
Brunner et al. | 2020 | arXiv:1908.04211
    On Identifiability in Transformers
Carlini et al. | 2023 | arXiv:2202.07646
    Quantifying Memorization Across Neural Language Models
Clark, Khandelwal, Levy and Manning | 2019 | arXiv:1906.04341
    What Does BERT Look At? An Analysis of BERT's Attention
Clark, Luong, Le and Manning | 2020 | arXiv:2003.10555
    ELECTRA: Pre-training Text Encoders as Discriminators Rather Than
    Generators
Conneau et al. | 2020 | arXiv:1911.02116
    Unsupervised Cross-lingual Representation Learning at Scale
Dao, Fu, Ermon, Rudra and Ré | 2022 | arXiv:2205.14135
    FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness
Deng, Dong, Socher, Li, Li and Fei-Fei | 2009 | CVPR
    ImageNet: A Large-Scale Hierarchical Image Database
Dong, Cordonnier and Loukas | 2021 | arXiv:2103.03404
    Attention is not all you need: pure attention loses rank doubly
    exponentially with depth
Elazar, Ravfogel, Jacovi and Goldberg | 2021 | arXiv:2006.00995
    Amnesic Probing: Behavioral Explanation with Amnesic Counterfactuals
Ethayarajh | 2019 | arXiv:1909.00512
    How Contextual are Contextualized Word Representations?
Fan, Lewis and Dauphin | 2018 | arXiv:1805.04833
    Hierarchical Neural Story Generation
Gers, Schmidhuber and Cummins | 2000 | Neural Computation 12
    Learning to Forget: Continual Prediction with LSTM
Gorodkin | 2004 | Computational Biology and Chemistry 28
    Comparing Two K-Category Assignments by a K-Category Correlation Coefficient
Gururangan et al. | 2018 | arXiv:1803.02324
    Annotation Artifacts in Natural Language Inference Data
Gururangan et al. | 2020 | arXiv:2004.10964
    Don't Stop Pretraining: Adapt Language Models to Domains and Tasks
He, Zhang, Ren and Sun | 2016 | arXiv:1512.03385
    Deep Residual Learning for Image Recognition
He, Liu, Gao and Chen | 2021 | arXiv:2006.03654
    DeBERTa: Decoding-enhanced BERT with Disentangled Attention
Hendrycks and Gimpel | 2016 | arXiv:1606.08415
    Gaussian Error Linear Units (GELUs)
Hewitt and Liang | 2019 | arXiv:1909.03368
    Designing and Interpreting Probes with Control Tasks
Hinton, Vinyals and Dean | 2015 | arXiv:1503.02531
    Distilling the Knowledge in a Neural Network
Hochreiter and Schmidhuber | 1997 | Neural Computation 9
    Long Short-Term Memory
Holm | 1979 | Scandinavian Journal of Statistics 6
    A Simple Sequentially Rejective Multiple Test Procedure
Holtzman, Buys, Du, Forbes and Choi | 2020 | arXiv:1904.09751
    The Curious Case of Neural Text Degeneration
Hu, Shen, Wallis, Allen-Zhu, Li, Wang, Wang and Chen | 2021 | arXiv:2106.09685
    LoRA: Low-Rank Adaptation of Large Language Models
Huang, Altosaar and Ranganath | 2019 | arXiv:1904.05342
    ClinicalBERT: Modeling Clinical Notes and Predicting Hospital Readmission
Jain and Wallace | 2019 | arXiv:1902.10186
    Attention is not Explanation
Jawahar, Sagot and Seddah | 2019 | ACL
    What Does BERT Learn about the Structure of Language?
Jia and Liang | 2017 | arXiv:1707.07328
    Adversarial Examples for Evaluating Reading Comprehension Systems
Jiao et al. | 2020 | arXiv:1909.10351
    TinyBERT: Distilling BERT for Natural Language Understanding
Joshi et al. | 2020 | arXiv:1907.10529
    SpanBERT: Improving Pre-training by Representing and Predicting Spans
Kaplan et al. | 2020 | arXiv:2001.08361
    Scaling Laws for Neural Language Models
Karpukhin et al. | 2020 | arXiv:2004.04906
    Dense Passage Retrieval for Open-Domain Question Answering
Kim and Rush | 2016 | arXiv:1606.07947
    Sequence-Level Knowledge Distillation
Kingma and Ba | 2015 | arXiv:1412.6980
    Adam: A Method for Stochastic Optimization
Kobayashi, Kuribayashi, Yokoi and Inui | 2020 | arXiv:2004.10102
    Attention is Not Only a Weight: Analyzing Transformers with Vector Norms
Koehn | 2004 | EMNLP
    Statistical Significance Tests for Machine Translation Evaluation
Korthikanti et al. | 2022 | arXiv:2205.05198
    Reducing Activation Recomputation in Large Transformer Models
Krell, Kosec, Perez and Fitzgibbon | 2021 | arXiv:2107.02027
    Efficient Sequence Packing without Cross-contamination: Accelerating Large
    Language Models without Impacting Performance
Lample and Conneau | 2019 | arXiv:1901.07291
    Cross-lingual Language Model Pretraining
Lan et al. | 2020 | arXiv:1909.11942
    ALBERT: A Lite BERT for Self-supervised Learning of Language
    Representations
Lee et al. | 2020 | Bioinformatics 36
    BioBERT: a pre-trained biomedical language representation model for
    biomedical text mining
Lee and Hsiang | 2020 | arXiv:1906.02124
    Patent Classification by Fine-Tuning BERT Language Model
Li, Ding and Liu | 2019 | arXiv:1905.07504
    Story Ending Prediction by Transferable BERT
Liu et al. | 2019 | arXiv:1907.11692
    RoBERTa: A Robustly Optimized BERT Pretraining Approach
Loshchilov and Hutter | 2019 | arXiv:1711.05101
    Decoupled Weight Decay Regularization
Matthews | 1975 | Biochimica et Biophysica Acta 405
    Comparison of the predicted and observed secondary structure of T4 phage
    lysozyme
Merity, Keskar and Socher | 2018 | arXiv:1708.02182
    Regularizing and Optimizing LSTM Language Models
Mitchell et al. | 2019 | arXiv:1810.03993
    Model Cards for Model Reporting
Michel, Levy and Neubig | 2019 | arXiv:1905.10650
    Are Sixteen Heads Really Better than One?
Micikevicius et al. | 2018 | arXiv:1710.03740
    Mixed Precision Training
Ney, Essen and Kneser | 1994 | Computer Speech and Language 8
    On structuring probabilistic dependences in stochastic language modelling
Nogueira and Cho | 2019 | arXiv:1901.04085
    Passage Re-ranking with BERT
Papineni, Roukos, Ward and Zhu | 2002 | ACL
    BLEU: a Method for Automatic Evaluation of Machine Translation
Pires, Schlinger and Garrette | 2019 | arXiv:1906.01502
    How Multilingual is Multilingual BERT?
Popović | 2015 | WMT
    chrF: character n-gram F-score for automatic MT evaluation
Post | 2018 | arXiv:1804.08771
    A Call for Clarity in Reporting BLEU Scores
Press and Wolf | 2017 | arXiv:1608.05859
    Using the Output Embedding to Improve Language Models
Rajpurkar, Zhang, Lopyrev and Liang | 2016 | arXiv:1606.05250
    SQuAD: 100,000+ Questions for Machine Comprehension of Text
Rajpurkar, Jia and Liang | 2018 | arXiv:1806.03822
    Know What You Don't Know: Unanswerable Questions for SQuAD
Reimers and Gurevych | 2019 | arXiv:1908.10084
    Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks
Sanford, Hsu and Telgarsky | 2024 | arXiv:2402.09268
    Transformers, parallel computation, and logarithmic depth
Sanh, Debut, Chaumond and Wolf | 2019 | arXiv:1910.01108
    DistilBERT, a distilled version of BERT: smaller, faster, cheaper and
    lighter
Schuster and Nakajima | 2012 | ICASSP
    Japanese and Korean Voice Search
Sennrich, Haddow and Birch | 2016 | arXiv:1508.07909
    Neural Machine Translation of Rare Words with Subword Units
Shang, Ma, Xiao and Sun | 2019 | arXiv:1906.00346
    Pre-training of Graph Augmented Transformers for Medication Recommendation
Shazeer | 2020 | arXiv:2002.05202
    GLU Variants Improve Transformer
Shoeybi et al. | 2019 | arXiv:1909.08053
    Megatron-LM: Training Multi-Billion Parameter Language Models Using Model \
Parallelism
Simonyan and Zisserman | 2015 | arXiv:1409.1556
    Very Deep Convolutional Networks for Large-Scale Image Recognition
Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov | 2014 | JMLR 15
    Dropout: A Simple Way to Prevent Neural Networks from Overfitting
Su, Lu, Pan, Murtadha, Wen and Liu | 2021 | arXiv:2104.09864
    RoFormer: Enhanced Transformer with Rotary Position Embedding
Sun et al. | 2019 | arXiv:1904.09223
    ERNIE: Enhanced Representation through Knowledge Integration
Sun, Myers, Vondrick, Murphy and Schmid | 2019 | arXiv:1904.01766
    VideoBERT: A Joint Model for Video and Language Representation Learning
Sun et al. | 2020 | arXiv:1907.12412
    ERNIE 2.0: A Continual Pre-training Framework for Language Understanding
Szegedy, Vanhoucke, Ioffe, Shlens and Wojna | 2016 | arXiv:1512.00567
    Rethinking the Inception Architecture for Computer Vision
Taylor | 1953 | Journalism Quarterly 30
    "Cloze Procedure": A New Tool for Measuring Readability
Tenney, Das and Pavlick | 2019 | arXiv:1905.05950
    BERT Rediscovers the Classical NLP Pipeline
Thakur, Reimers, Rücklé, Srivastava and Gurevych | 2021 | arXiv:2104.08663
    BEIR: A Heterogenous Benchmark for Zero-shot Evaluation of Information
    Retrieval Models
Tjong Kim Sang and De Meulder | 2003 | CoNLL
    Introduction to the CoNLL-2003 Shared Task: Language-Independent Named
    Entity Recognition
Trockman and Kolter | 2023 | arXiv:2305.09828
    Mimetic Initialization of Self-Attention Layers
Turc, Chang, Lee and Toutanova | 2019 | arXiv:1908.08962
    Well-Read Students Learn Better: On the Importance of Pre-training Compact
    Models
van den Oord, Li and Vinyals | 2018 | arXiv:1807.03748
    Representation Learning with Contrastive Predictive Coding
Vig et al. | 2020 | arXiv:2004.12265
    Investigating Gender Bias in Language Models Using Causal Mediation
    Analysis
Voita, Talbot, Moiseev, Sennrich and Titov | 2019 | arXiv:1905.09418
    Analyzing Multi-Head Self-Attention: Specialized Heads Do the Heavy
    Lifting, the Rest Can Be Pruned
Voita and Titov | 2020 | arXiv:2003.12298
    Information-Theoretic Probing with Minimum Description Length
Wang et al. | 2020 | arXiv:2002.10957
    MiniLM: Deep Self-Attention Distillation for Task-Agnostic Compression of
    Pre-Trained Transformers
Warner et al. | 2024 | arXiv:2412.13663
    Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder for Fast,
    Memory Efficient, and Long Context Finetuning and Inference
Wettig, Gao, Zhong and Chen | 2023 | arXiv:2202.08005
    Should You Mask 15% in Masked Language Modeling?
Wiegreffe and Pinter | 2019 | arXiv:1908.04626
    Attention is not not Explanation
Wortsman et al. | 2022 | arXiv:2109.01903
    Robust Fine-tuning of Zero-shot Models
Xiao, Tian, Chen, Han and Lewis | 2024 | arXiv:2309.17453
    Efficient Streaming Language Models with Attention Sinks
Xiong et al. | 2020 | arXiv:2002.04745
    On Layer Normalization in the Transformer Architecture
Zhang et al. | 2019 | arXiv:1905.07129
    ERNIE: Enhanced Language Representation with Informative Entities
"""


def further() -> tuple[Reference, ...]:
    """Returns the works that the book cites beyond those of the five texts."""
    works: list[Reference] = []
    for line in _FURTHER.strip().split("\n"):
        if line.startswith(" "):
            last = works.pop()
            title = f"{last.title} {line.strip()}".strip()
            works.append(last._replace(title=title))
        else:
            authors, year, where = line.split(" | ")
            works.append(Reference(authors, int(year), "", where))
    return tuple(works)
