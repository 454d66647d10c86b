"""Texts for people in Discord, made from values. Nothing here sends, asks or changes anything."""
