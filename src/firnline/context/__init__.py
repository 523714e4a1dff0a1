"""What goes to the model: budget, plan, view, sections, and how they are written. Pure."""
