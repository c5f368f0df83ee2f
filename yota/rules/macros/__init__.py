"""Macros: functions of rule bodies that expand to several primitives; a file for each kind."""
