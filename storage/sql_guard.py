"""Refuse SQL that does more than read the tables of the store with listed functions.

DuckDB parses the statement, and its own parse tree is checked: query nodes that only read, functions that are listed
below, tables that cannot be the name of a file. A function that is not listed is refused, so one that a later DuckDB
adds is refused too. The catalogue gives DuckDB no directory and no credentials, so this check is not the only one.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb

from storage.errors import QueryError

_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(ANALYZE\s+)?", re.IGNORECASE)
_TABLE_NAME = re.compile(r"[\w ]*")
_READING_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}

TABLE_FUNCTIONS = frozenset({"generate_series", "json_each", "range", "unnest"})

FUNCTIONS = frozenset(
    """
    ! != !~~ !~~* % & && * ** + - -> ->> / // < <-> << <= <=> <@ = > >= >> @ @> ^ ^@ | || ~ ~~ ~~* ~~~
    add divide mod multiply subtract xor

    any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_min arg_min_null
    argmax argmin array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count count_if count_star countif covar_pop
    covar_samp entropy favg first fsum geomean geometric_mean group_concat histogram kahan_sum kurtosis kurtosis_pop
    last list listagg mad max max_by mean median min min_by mode product quantile quantile_cont quantile_disc regr_avgx
    regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy reservoir_quantile sem skewness
    stddev stddev_pop stddev_samp string_agg sum sumkahan var_pop var_samp variance wavg weighted_avg
    grouping grouping_id

    cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank rank_dense row_number

    abs acos acosh asin asinh atan atan2 atanh bin binom bit_count cbrt ceil ceiling cos cosh cot degrees even exp
    factorial fdiv floor fmod gamma gcd greatest greatest_common_divisor hex isfinite isinf isnan lcm least
    least_common_multiple lgamma ln log log10 log2 nextafter pi pow power radians random round round_even sign signbit
    sin sinh sqrt tan tanh trunc

    alias coalesce constant_or_null error hash if ifnull nullif typeof

    ascii bar base64 bit_length char_length character_length chr concat concat_ws contains damerau_levenshtein decode
    editdist3 encode ends_with format format_bytes formatreadabledecimalsize formatreadablesize from_base64 from_hex
    hamming ilike_escape instr jaccard jaro_similarity jaro_winkler_similarity lcase left left_grapheme len length
    length_grapheme levenshtein like_escape lower lpad ltrim md5 mismatches nfc_normalize not_ilike_escape
    not_like_escape octet_length ord overlay parse_filename position prefix printf regexp_escape regexp_extract
    regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array repeat replace reverse
    right right_grapheme rpad rtrim sha1 sha256 split split_part starts_with str_split str_split_regex string_split
    string_split_regex string_to_array strip_accents strlen strpos substr substring substring_grapheme suffix to_base
    to_base64 to_hex translate trim ucase unhex unicode upper url_decode url_encode

    age ago century current_date current_localtime current_localtimestamp date_add date_diff date_part date_sub
    date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear days_in_month decade epoch
    epoch_ms epoch_ns epoch_us era get_current_time get_current_timestamp hour isodow isoyear julian last_day make_date
    make_time make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz microsecond millennium millisecond
    minute month monthname nanosecond now quarter second strftime strptime time_bucket timezone timezone_hour
    timezone_minute to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds to_minutes
    to_months to_quarters to_seconds to_timestamp to_weeks to_years today transaction_timestamp try_strptime week
    weekday weekofyear year yearweek

    aggregate apply array_append array_apply array_cat array_concat array_contains array_cosine_distance
    array_cosine_similarity array_cross_product array_distance array_distinct array_dot_product array_extract
    array_filter array_has array_has_all array_has_any array_indexof array_inner_product array_intersect array_length
    array_negative_dot_product array_negative_inner_product array_pop_back array_pop_front array_position array_prepend
    array_push_back array_push_front array_reduce array_resize array_reverse array_reverse_sort array_select array_slice
    array_sort array_to_string array_transform array_unique array_value array_where array_zip equi_width_bins filter
    flatten generate_series grade_up list_aggr list_aggregate list_any_value list_append list_apply
    list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor list_bool_and list_bool_or list_cat
    list_concat list_contains list_cosine_distance list_cosine_similarity list_count list_distance list_distinct
    list_dot_product list_element list_entropy list_extract list_filter list_first list_grade_up list_has list_has_all
    list_has_any list_histogram list_indexof list_inner_product list_intersect list_kurtosis list_last list_mad list_max
    list_median list_min list_mode list_negative_dot_product list_negative_inner_product list_pack list_position
    list_prepend list_product list_reduce list_resize list_reverse list_reverse_sort list_select list_sem list_skewness
    list_slice list_sort list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique list_value
    list_var_pop list_var_samp list_where list_zip range reduce unnest

    cardinality element_at map map_concat map_contains map_contains_entry map_contains_value map_entries map_extract
    map_extract_value map_from_entries map_keys map_values row struct_concat struct_contains struct_extract
    struct_extract_at struct_has struct_insert struct_keys struct_pack struct_position struct_update struct_values

    array_to_json from_json json json_array json_array_length json_contains json_exists json_extract json_extract_path
    json_extract_path_text json_extract_string json_group_array json_group_object json_group_structure json_keys
    json_merge_patch json_object json_pretty json_quote json_structure json_transform json_type json_valid json_value
    row_to_json to_json
    """.split()  # noqa: SIM905
)


def refuse_writes(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Raise QueryError unless this is one SELECT (or FROM, WITH, DESCRIBE, SHOW, SUMMARIZE), or an EXPLAIN of one."""
    statements = duckdb.extract_statements(statement)
    if len(statements) != 1:
        raise QueryError(f"only one statement at a time is allowed; this has {len(statements)}")
    kind = statements[0].type
    if kind == duckdb.StatementType.EXPLAIN and (explain := _EXPLAIN.match(statement)):
        refuse_writes(connection, statement[explain.end() :])
        return
    if kind != duckdb.StatementType.SELECT:
        raise QueryError(f"the store is read-only here: a {kind.name} statement is refused; use SELECT")
    answer = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [statement]).fetchall()
    tree = json.loads(answer[0][0])
    if tree.get("error"):
        raise QueryError(f"this kind of statement is refused: {tree.get('error_message')}")
    for node in _nodes(tree):
        _check_node(node)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every node of a parse tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _check_node(node: dict[str, Any]) -> None:
    kind = str(node.get("type", ""))
    if kind.endswith("_NODE") and kind not in _READING_NODES:  # since DuckDB 2.0 a CTE may write
        raise QueryError(f"the store is read-only here: {kind} inside the query is refused")
    if kind == "TABLE_FUNCTION":
        name = str(node.get("function", {}).get("function_name"))
        if name.lower() not in TABLE_FUNCTIONS:
            raise QueryError(
                f"the function {name} is refused in FROM; allowed are {', '.join(sorted(TABLE_FUNCTIONS))}"
            )
    elif "function_name" in node:
        name = str(node["function_name"])
        if name.lower() not in FUNCTIONS | TABLE_FUNCTIONS:
            raise QueryError(f"the function {name} is refused: storage/sql_guard.py lists the allowed functions")
    elif kind == "BASE_TABLE" and not _TABLE_NAME.fullmatch(str(node["table_name"])):
        raise QueryError(
            f"{node['table_name']!r} is not a table of the store, and SQL cannot read files here (`SHOW TABLES`)"
        )
