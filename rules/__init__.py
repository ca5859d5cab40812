"""The rules, one module each. Every class of theirs that derives from `cachelint.rule.Rule` is a rule."""
