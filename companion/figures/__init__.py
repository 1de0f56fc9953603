"""The chapter's figures: one draw function each, with the controls that a reader can move."""
