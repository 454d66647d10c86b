"""The tables of the archive of talk (`search/archive_tables`), as a part of the schema.

    archive_state    one row: how many entries there are, how many terms they have together, and about their
                     vectors: the model that made them, their length, how often all of them were removed, how
                     many texts were sent on which day, and the entry below which none was looked at yet.
                     Whoever writes locks it first, so that one transaction at a time changes the archive
    archive_entries  one row a message; `place` says who may find it: a channel's id, or a person's, negative,
                     for their direct messages. `seq` is the order in which they were stored
    archive_terms    each term, and how many entries have it; none that no entry has
    archive_words    one row for each term of each entry: how often it is there, and how long the entry is
    archive_signs    the signs of the vectors, and an order of the messages that has nothing to do with time
    archive_vectors  the vectors, with a byte for each number
    archive_unembedded  the messages that still need one

Why a table of terms, and no full-text index of PostgreSQL's, is in docs/dev/decisions.md.
"""

ARCHIVE = (
    """CREATE TABLE archive_state (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        entries bigint NOT NULL DEFAULT 0,
        length bigint NOT NULL DEFAULT 0,
        tokens bigint NOT NULL DEFAULT 0,
        model text NOT NULL DEFAULT '',
        dims integer NOT NULL DEFAULT 0,
        starts bigint NOT NULL DEFAULT 0,
        day bigint NOT NULL DEFAULT 0,
        sent bigint NOT NULL DEFAULT 0,
        unlisted bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 50)""",
    "INSERT INTO archive_state DEFAULT VALUES",
    """CREATE TABLE archive_entries (
        seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id bigint NOT NULL UNIQUE,
        session_key text COLLATE "C" NOT NULL,
        channel_id text COLLATE "C" NOT NULL,
        group_id text COLLATE "C",
        guild_id text COLLATE "C",
        author_id text COLLATE "C" NOT NULL,
        name text NOT NULL,
        text text NOT NULL,
        sent_at bigint NOT NULL,
        by_us boolean NOT NULL,
        to_id text COLLATE "C" NOT NULL,
        place bigint NOT NULL,
        terms text NOT NULL,
        length integer NOT NULL,
        own integer NOT NULL,
        marks integer NOT NULL
    )""",
    "CREATE INDEX archive_entries_in_order ON archive_entries (session_key, id)",
    "CREATE INDEX archive_entries_by_place ON archive_entries (place, id)",
    "CREATE INDEX archive_entries_by_time ON archive_entries (sent_at)",
    "CREATE INDEX archive_entries_by_channel ON archive_entries (channel_id)",
    "CREATE INDEX archive_entries_by_author ON archive_entries (author_id)",
    "CREATE INDEX archive_entries_by_addressee ON archive_entries (to_id) WHERE to_id <> ''",
    """CREATE TABLE archive_terms (
        id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        term text COLLATE "C" NOT NULL UNIQUE,
        entries bigint NOT NULL
    ) WITH (fillfactor = 70)""",
    """CREATE TABLE archive_words (
        seq bigint NOT NULL,
        place bigint NOT NULL,
        term integer NOT NULL,
        times integer NOT NULL,
        tokens integer NOT NULL,
        PRIMARY KEY (term, place, seq) INCLUDE (times, tokens)
    )""",
    """CREATE TABLE archive_vectors (
        id bigint PRIMARY KEY REFERENCES archive_entries (id) ON DELETE CASCADE,
        vector bytea NOT NULL
    )""",
    """CREATE TABLE archive_signs (
        id bigint PRIMARY KEY REFERENCES archive_vectors (id) ON DELETE CASCADE,
        place bigint NOT NULL,
        mixed bigint NOT NULL,
        signs bit varying NOT NULL
    )""",
    "CREATE INDEX archive_signs_mixed ON archive_signs (place, mixed)",
    """CREATE TABLE archive_unembedded (
        id bigint PRIMARY KEY REFERENCES archive_entries (id) ON DELETE CASCADE,
        place bigint NOT NULL
    )""",
    "CREATE INDEX archive_unembedded_by_place ON archive_unembedded (place, id)",
)
"""The statements that make them."""

TABLES = (
    *("archive_state", "archive_entries", "archive_terms", "archive_words"),
    *("archive_vectors", "archive_signs", "archive_unembedded"),
)
"""The tables, each after those that it refers to."""
COUNTED = (("archive_entries", "seq"), ("archive_terms", "id"))
"""The columns that PostgreSQL numbers."""
