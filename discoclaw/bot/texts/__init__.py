"""What people read in Discord: texts made from values. Nothing here sends, asks or changes anything."""
