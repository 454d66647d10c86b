"""What people can do with one message: the commands in its menu (right click, or a long press on a phone)."""
