"""Options before, between or after the words of a simulated program, whose own options must not be touched."""


def take(words, options):
    """(the other words, the options with the values found); an option without a value is left where it is."""
    words, found = list(words), dict(options)
    for option in options:
        if option in words[:-1]:
            at = words.index(option)
            found[option] = words[at + 1]
            del words[at : at + 2]
    return words, found
