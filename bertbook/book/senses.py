"""Words with two meanings, and how well a model tells the meanings apart.

Words in four sentences each, written for this book: two sentences with one
meaning, then two with the other. The word is token 5 of each of them, and
apart from it no two of the four share a token, so that whatever makes two
vectors of the word alike is not a word that both sentences have.

In seven of the twelve words of `SENSES` the meanings are also two classes of
words, such as a noun and a verb. In `NOUNS` both meanings are nouns.
"""

import numpy as np

from bertbook.runtime import ops

POSITION = 5  # of the word, with [CLS] at 0
SENSES = {
    "fire": (
        "The smoke from the fire filled an old kitchen",
        "We could see how fire got across that road",
        "Nobody would dare to fire his son without reason",
        "Companies often try and fire people when business falls",
    ),
    "bank": (
        "She walked along the bank of that wide river",
        "Grass grew down each bank where boats were tied",
        "Your money lies in bank until next month",
        "He asked his own bank for another loan",
    ),
    "spring": (
        "Flowers open early each spring after months without sun",
        "They waited for the spring because winter was hard",
        "Horses drank at that spring near our camp",
        "Cold water from a spring filled his cup",
    ),
    "light": (
        "He put out the light and closed his door",
        "Only a candle gave light when evening came",
        "Your bag is very light so carry mine too",
        "It proved to be light enough for them",
    ),
    "letter": (
        "He sent me that letter after leaving town",
        "Yesterday morning their long letter came by ship",
        "Every word needs a letter before its end",
        "Which is the first letter of your name",
    ),
    "left": (
        "He raised his own left hand and took it",
        "Turn toward your far left where two doors stand",
        "Before dawn both sisters left without saying goodbye",
        "The old servant had left many years ago",
    ),
    "rose": (
        "She gave him a rose and some white ribbon",
        "No garden flower like rose can smell so sweet",
        "Before us smoke slowly rose above tall trees",
        "Then the old king rose from his chair",
    ),
    "mine": (
        "The men in that mine were digging for coal",
        "Below ground this gold mine ran many miles",
        "Your house looks like mine but has no garden",
        "I think it is mine and not his",
    ),
    "match": (
        "He struck his last match and held it up",
        "Every dry wooden little match burns with smoke",
        "Our side lost that match before many people",
        "They played a long match against some students",
    ),
    "state": (
        "Every new southern free state sent two men",
        "A law of this state forbids all such trade",
        "He was in poor state when we found him",
        "Nobody saw her sad state or offered help",
    ),
    "kind": (
        "What is that new kind which you bought",
        "There was every possible kind of fish",
        "She had always been kind toward her sister",
        "My old aunt seemed kind and gentle",
    ),
    "fair": (
        "That would not be fair to poor people",
        "We all want a fair trial for him",
        "Many farmers visited the fair each autumn",
        "At his first country fair he bought cows",
    ),
}
NOUNS = {
    "plant": (
        "Workers left the old plant when its engines stopped",
        "Steel comes from this plant near our river",
        "She gave every green plant water before noon",
        "You find no desert plant in cold soil",
    ),
    "court": (
        "He stood before the court and denied his crime",
        "Lawyers argue in that court about new laws",
        "Two players crossed our court after each game",
        "Tennis needs a grass court where nets hang",
    ),
    "ball": (
        "The boy threw his ball over that wall",
        "Her dog found a ball in green grass",
        "They danced at our ball until morning came",
        "Each guest of this ball wore silk and gold",
    ),
    "cell": (
        "They locked him in cell nine for ten years",
        "A guard opened her cell with an iron key",
        "Blood carries each red cell through your body",
        "Under glass one nerve cell looks like stars",
    ),
    "chest": (
        "Pain spread across his chest and down one arm",
        "The bullet entered her chest below that heart",
        "Sailors buried a wooden chest full of gold",
        "I opened an old chest where letters lay",
    ),
    "palm": (
        "He held out his palm for some coins",
        "Water lay in her palm while I washed",
        "Shade from a tall palm fell upon sand",
        "The wind bent each palm along that beach",
    ),
    "ring": (
        "He gave her a ring with one blue stone",
        "My mother lost this ring while washing dishes",
        "Both men left the ring after eight rounds",
        "Crowds shouted around our ring until someone fell",
    ),
    "seal": (
        "We saw a gray seal asleep on those rocks",
        "Bears hunt the young seal beneath thick ice",
        "He pressed his gold seal into warm wax",
        "Her letter bore no seal or name at all",
    ),
    "organ": (
        "The heart is one organ that never stops",
        "Doctors replaced a sick organ in his body",
        "Someone played our great organ every Sunday",
        "Music from an old organ filled this church",
    ),
    "club": (
        "She joined a chess club with twelve members",
        "Many men in our club read books together",
        "He swung his heavy club at the wolf",
        "Every player needs one club for long shots",
    ),
}


def margin(vectors):
    """Returns by how much vectors of one meaning are more alike than others.

    Args:
        vectors: A word's vectors in four texts, `(4, D)`: two of the one
            meaning, then two of the other.

    Returns:
        The mean cosine of the two pairs with one meaning, minus that of the
        four pairs with different meanings: between -2 and 2, and around 0 for
        vectors that know nothing of meanings.
    """
    units = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    cosines = units @ units.T  # (4, 4)
    same = (cosines[0, 1] + cosines[2, 3]) / 2
    return same - cosines[:2, 2:].mean()


def sense_margins(model, tokenizer, senses=SENSES):
    """Computes the margin of every word in every hidden state of a model.

    Args:
        model: A `BertEncoder`.
        tokenizer: Its tokenizer.
        senses: Dict of words to four texts each, as `SENSES`.

    Returns:
        NumPy array of shape `(L + 1, words)`; the first row is that of the
        embeddings.
    """
    texts = [text for four in senses.values() for text in four]
    outputs = model(tokenizer(texts), output_hidden_states=True)
    states = [ops.convert_to_numpy(h) for h in outputs["hidden_states"]]
    vectors = np.stack(states)[:, :, POSITION]  # (L + 1, 4 * words, D)
    shape = len(states), len(senses), 4, vectors.shape[-1]
    return np.array(
        [[margin(four) for four in state] for state in vectors.reshape(shape)]
    )
