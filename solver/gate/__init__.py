"""Files of a project -> the launches in them, checked before anything starts."""
