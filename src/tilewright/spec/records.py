"""How frozen records that convert their arguments are filled."""


def set_fields(record: object, **values: object) -> None:
    """Set the fields of a frozen record while it is made."""
    for name, value in values.items():
        object.__setattr__(record, name, value)
