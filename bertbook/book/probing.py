"""Linear probes, directions to take out of vectors, and Holm's correction.

`WORDS` is a list of common words by class, written for this book. Words that
are often of two classes, such as "work" and "light", were left out.
"""

import numpy as np

WORDS = {
    "noun": "house river door table bread garden window school street town "
    "mother father boy girl king church road bridge ship paper letter money "
    "village city office kitchen machine engine dog horse tree mountain "
    "forest winter summer morning evening night doctor teacher child woman man "
    "sister brother station train boat field roof wall floor glass bottle box "
    "chair bed picture book story language music history science minute hour "
    "week month year",
    "verb": "said went came took gave told knew saw asked began brought kept "
    "stood wrote became spoke heard grew held sent lost built ate drove "
    "carried believed happened learned wanted needed seemed arrived remembered "
    "belonged explained allowed decided refused agreed go come bring give tell "
    "know see ask begin become write speak hear grow send lose eat believe "
    "happen learn seem arrive remember explain allow decide refuse agree",
    "adjective": "old small young large great big happy beautiful strong "
    "important different difficult possible common famous poor rich strange "
    "thin thick wide tall new bad quiet angry hungry warm dry wet heavy deep "
    "dark soft dangerous expensive useful careful whole tiny huge empty local "
    "modern ancient public private similar serious simple proper usual special "
    "certain ready full true wrong able",
    "adverb": "never always often again soon already perhaps slowly quickly "
    "almost very quite too here there now then once together away sometimes "
    "usually suddenly finally nearly really still ever also instead",
}


def linear_probe(vectors, labels, ridge=0.01):
    """Fits a weighted sum for each class, by least squares.

    Args:
        vectors: Array of shape `(n, D)`.
        labels: n integers, 0 to K - 1.
        ridge: How strongly the weights are kept small, as a share of the mean
            square of the inputs.

    Returns:
        Weights, `(D + 1, K)`; the first row is the bias.
    """
    X = np.insert(vectors, 0, 1.0, axis=1).astype("float64")
    targets = np.eye(labels.max() + 1)[labels]  # (n, K), one-hot
    squares = X.T @ X / len(X)
    small = ridge * np.diag(squares).mean() * np.eye(len(squares))
    return np.linalg.solve(squares + small, X.T @ targets / len(X))


def class_directions(vectors, labels):
    """Returns the directions in which the means of the classes differ.

    Without them all classes have the same mean, and then no linear probe has
    a lower loss than one constant answer (Belrose et al., 2023).

    Args:
        vectors: Array of shape `(n, D)`.
        labels: n integers, 0 to K - 1.

    Returns:
        K - 1 orthogonal directions of length 1, `(K - 1, D)`.
    """
    classes = range(labels.max() + 1)
    means = np.stack([vectors[labels == k].mean(axis=0) for k in classes])
    _, _, directions = np.linalg.svd(means - means.mean(axis=0))
    return directions[: len(means) - 1]


def remove_directions(vectors, directions, center):
    """Moves vectors to where they no longer differ in some directions.

    Args:
        vectors: Array of shape `(..., D)`.
        directions: Orthogonal directions of length 1, `(k, D)`.
        center: The vector, `(D,)`, whose values in these directions all get.

    Returns:
        Array of the shape of `vectors`.
    """
    along = (vectors - center) @ directions.T  # (..., k)
    return vectors - along @ directions


def holm(p_values):
    """Corrects p-values for the number of questions asked.

    Source: Holm (1979).

    Args:
        p_values: m numbers.

    Returns:
        m numbers, each at most 1. Where one is below 0.05, the chance that
        any such finding is a false alarm is below 0.05.
    """
    p_values = np.asarray(p_values)
    order = np.argsort(p_values)
    factors = np.arange(len(order), 0, -1)  # m for the smallest, then m - 1
    grown = np.maximum.accumulate(p_values[order] * factors)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(grown, 1.0)
    return adjusted
