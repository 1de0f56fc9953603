"""The chapter's letters, as labels and sliders show them."""

ALPHA, BETA, GAMMA, DELTA = "\u03b1", "\u03b2", "\u03b3", "\u03b4"
EPSILON, ETA, THETA, PI, TAU = "\u03b5", "\u03b7", "\u03b8", "\u03c0", "\u03c4"
STEP_OF_THETA = "\u0394\u03b8"
