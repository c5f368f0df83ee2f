"""The intermediate representation: types, primitives and tapes."""
