"""The stages of the planner on keys written by hand, without a device."""
