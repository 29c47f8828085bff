"""DuckDB through its C API, which the library of the duckdb wheel exports.

The Python API would make Python values of results, and a test of texts would then depend on how Python prints
them. Here DuckDB itself casts every value to text.
"""

import ctypes
import struct
import threading

INDEX, POINTER, TEXT = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_char_p

INLINE_TEXT_BYTES_MAX = 12
"""Texts up to this length lie in the vector itself, longer ones where it points (duckdb.h: duckdb_string_t)."""

STRING_ENTRY_BYTES = 16

BOOLEAN = 1
FLOATING = {10, 11}
NUMERIC = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 19, 32}
"""Numbers of duckdb.h's duckdb_type."""


class Result(ctypes.Structure):
    """duckdb_result: six words that only the library reads."""

    _fields_ = [(name, INDEX) for name in "abc"] + [(name, POINTER) for name in "def"]


RESULT_POINTER = ctypes.POINTER(Result)
POINTER_POINTER = ctypes.POINTER(POINTER)
ON_INFO = ctypes.CFUNCTYPE(None, POINTER)
ON_CHUNK = ctypes.CFUNCTYPE(None, POINTER, POINTER)

SIGNATURES = {
    "library_version": (TEXT,),
    "create_config": (ctypes.c_int, POINTER_POINTER),
    "set_config": (ctypes.c_int, POINTER, TEXT, TEXT),
    "destroy_config": (None, POINTER_POINTER),
    "open_ext": (ctypes.c_int, TEXT, POINTER_POINTER, POINTER, POINTER_POINTER),
    "close": (None, POINTER_POINTER),
    "connect": (ctypes.c_int, POINTER, POINTER_POINTER),
    "disconnect": (None, POINTER_POINTER),
    "query": (ctypes.c_int, POINTER, TEXT, RESULT_POINTER),
    "destroy_result": (None, RESULT_POINTER),
    "result_error": (TEXT, RESULT_POINTER),
    "column_count": (INDEX, RESULT_POINTER),
    "column_type": (ctypes.c_int, RESULT_POINTER, INDEX),
    "column_logical_type": (POINTER, RESULT_POINTER, INDEX),
    "destroy_logical_type": (None, POINTER_POINTER),
    "fetch_chunk": (POINTER, Result),
    "destroy_data_chunk": (None, POINTER_POINTER),
    "data_chunk_get_size": (INDEX, POINTER),
    "data_chunk_set_size": (None, POINTER, INDEX),
    "data_chunk_get_vector": (POINTER, POINTER, INDEX),
    "vector_get_data": (POINTER, POINTER),
    "vector_get_validity": (POINTER, POINTER),
    "vector_reference_vector": (None, POINTER, POINTER),
    "create_table_function": (POINTER,),
    "table_function_set_name": (None, POINTER, TEXT),
    "table_function_set_bind": (None, POINTER, ON_INFO),
    "table_function_set_init": (None, POINTER, ON_INFO),
    "table_function_set_function": (None, POINTER, ON_CHUNK),
    "register_table_function": (ctypes.c_int, POINTER, POINTER),
    "bind_add_result_column": (None, POINTER, TEXT, POINTER),
}
"""Functions of duckdb.h, without the prefix `duckdb_`: what they return, then what they take."""


class Library:
    """The functions of the library, typed; and databases, connections and queries on top of them."""

    def __init__(self):
        import _duckdb

        library = ctypes.CDLL(_duckdb.__file__)
        for name, (returns, *takes) in SIGNATURES.items():
            function = getattr(library, "duckdb_" + name)
            function.restype, function.argtypes = returns, takes
            setattr(self, name, function)
        self.version = self.library_version().decode()
        self.printer = Printer(self)

    def open_database(self, path=None, config=None):
        """A handle of a database; in memory without a path."""
        options, database, error = POINTER(), POINTER(), POINTER()
        self.create_config(ctypes.byref(options))
        for name, value in (config or {}).items():
            self.set_config(options, name.encode(), str(value).encode())
        where = path.encode() if path else None
        failed = self.open_ext(where, ctypes.byref(database), options, ctypes.byref(error))
        self.destroy_config(ctypes.byref(options))
        if failed:
            text = ctypes.string_at(error.value) if error.value else b"no reason given"
            raise RuntimeError("cannot open the database: " + text.decode(errors="replace"))
        return database

    def connection(self, database):
        """A handle of a new connection."""
        connection = POINTER()
        if self.connect(database, ctypes.byref(connection)):
            raise RuntimeError("cannot connect to the database")
        return connection

    def run(self, connection, sql, with_rows=False):
        """Error (or None), type numbers of the columns, and rows of texts; None stands for NULL."""
        result = Result()
        try:
            if self.query(connection, sql.encode(), ctypes.byref(result)):
                error = self.result_error(ctypes.byref(result)) or b"no reason given"
                return error.decode(errors="replace"), [], []
            count = self.column_count(ctypes.byref(result))
            types = [self.column_type(ctypes.byref(result), column) for column in range(count)]
            rows = self.printer.texts(result, count) if with_rows and count else []
            return None, types, rows
        finally:
            self.destroy_result(ctypes.byref(result))


class Printer:
    """Makes texts of results.

    A table function in a database of its own hands on the chunks of a result as they are, and a query casts its
    columns to VARCHAR: every type is printed by DuckDB.
    """

    QUERY = b"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM result_chunks()"

    def __init__(self, library):
        self.library = library
        self.lock = threading.Lock()
        self.connection = None
        self.source, self.types, self.chunks = None, [], []
        self.time_zone = None
        """The time zone in which times with one are to be printed; None: the default one."""
        self.time_zone_set = None

    def texts(self, result, column_count):
        """The rows of a result, as texts."""
        library = self.library
        with self.lock:
            if self.connection is None:
                self._start()
            self._set_time_zone()
            self.source = result
            self.types = [library.column_logical_type(ctypes.byref(result), i) for i in range(column_count)]
            printed = Result()
            try:
                if library.query(self.connection, self.QUERY, ctypes.byref(printed)):
                    error = library.result_error(ctypes.byref(printed))
                    raise RuntimeError("a result cannot be printed: " + error.decode(errors="replace"))
                return self._strings(printed, column_count)
            finally:
                library.destroy_result(ctypes.byref(printed))
                for chunk in self.chunks:
                    library.destroy_data_chunk(ctypes.byref(chunk))
                for logical_type in self.types:
                    library.destroy_logical_type(ctypes.byref(POINTER(logical_type)))
                self.chunks, self.types = [], []

    def _start(self):
        library = self.library
        # Handles and callbacks live as long as the function can be called.
        self.database = library.open_database(config={"threads": 1})
        self.connection = library.connection(self.database)
        self.callbacks = ON_INFO(self._bind), ON_INFO(lambda info: None), ON_CHUNK(self._fill)
        function = library.create_table_function()
        library.table_function_set_name(function, b"result_chunks")
        library.table_function_set_bind(function, self.callbacks[0])
        library.table_function_set_init(function, self.callbacks[1])
        library.table_function_set_function(function, self.callbacks[2])
        library.register_table_function(self.connection, function)

    def _bind(self, info):
        for column, logical_type in enumerate(self.types):
            self.library.bind_add_result_column(info, b"c%d" % column, logical_type)

    def _fill(self, _info, output):
        library = self.library
        chunk = library.fetch_chunk(self.source)
        if not chunk:
            library.data_chunk_set_size(output, 0)
            return
        self.chunks.append(POINTER(chunk))
        for column in range(len(self.types)):
            target = library.data_chunk_get_vector(output, column)
            library.vector_reference_vector(target, library.data_chunk_get_vector(chunk, column))
        library.data_chunk_set_size(output, library.data_chunk_get_size(chunk))

    def _set_time_zone(self):
        if self.time_zone == self.time_zone_set:
            return
        quoted = self.time_zone.replace("'", "''")
        ignored = Result()
        self.library.query(self.connection, f"SET TimeZone='{quoted}'".encode(), ctypes.byref(ignored))
        self.library.destroy_result(ctypes.byref(ignored))
        self.time_zone_set = self.time_zone

    def _strings(self, result, column_count):
        rows = []
        while True:
            chunk = self.library.fetch_chunk(result)
            if not chunk:
                return rows
            size = self.library.data_chunk_get_size(chunk)
            vectors = [self.library.data_chunk_get_vector(chunk, column) for column in range(column_count)]
            rows.extend(zip(*(self._column(vector, size) for vector in vectors)))
            self.library.destroy_data_chunk(ctypes.byref(POINTER(chunk)))

    def _column(self, vector, size):
        entries = ctypes.string_at(self.library.vector_get_data(vector), STRING_ENTRY_BYTES * size)
        mask = self.library.vector_get_validity(vector)
        valid = ctypes.cast(mask, ctypes.POINTER(INDEX)) if mask else None
        texts = []
        for row in range(size):
            if valid and not (valid[row >> 6] >> (row & 63)) & 1:
                texts.append(None)
                continue
            at = STRING_ENTRY_BYTES * row
            (length,) = struct.unpack_from("<I", entries, at)
            if length <= INLINE_TEXT_BYTES_MAX:
                raw = entries[at + 4 : at + 4 + length]
            else:
                (address,) = struct.unpack_from("<Q", entries, at + 8)
                raw = ctypes.string_at(address, length)
            texts.append(raw.decode(errors="replace"))
        return texts
