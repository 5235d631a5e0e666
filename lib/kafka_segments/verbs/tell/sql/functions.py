"""Which functions a query may call: Spark's own, without those that reach out of it."""

from pyspark.sql import functions

# In PySpark for Python alone.
_OF_PYTHON = {
    *("broadcast", "call_function", "call_udf", "col", "column", "expr", "lit", "pandas_udf"),
    *("arrow_udf", "arrow_udtf", "udf", "udtf", "unwrap_udt"),
}
ROW_FUNCTIONS = {
    *("collations", "explode", "explode_outer", "inline", "inline_outer", "json_tuple"),
    *("posexplode", "posexplode_outer", "range", "sql_keywords", "stack"),
    *("variant_explode", "variant_explode_outer"),
}
"""Functions that make rows of their arguments. All others read tables, or files by path."""
REACH_OUT = {
    *("java_method", "reflect", "try_reflect"),
    *("from_avro", "to_avro", "schema_of_avro", "from_protobuf", "to_protobuf"),
    *("from_xml", "schema_of_xml"),
}
"""Functions that call Java methods, or take the path of a schema among their options."""
# In Spark's SQL, and not in PySpark under that name.
_OF_SQL = {
    *("any", "approx_top_k", "approx_top_k_accumulate", "approx_top_k_combine"),
    *("approx_top_k_estimate", "bigint", "binary", "boolean", "cast", "chr", "measure"),
    *("date", "decimal", "double", "float", "if", "int", "len", "luhn_check", "map", "mod", "not"),
    *("percentile_cont", "percentile_disc", "random", "smallint", "space", "string", "struct"),
    *("time", "timestamp", "timestampadd", "timestampdiff", "tinyint", "try_cast", "uuid"),
    *("vector_avg", "vector_cosine_similarity", "vector_inner_product", "vector_l2_distance"),
    *("vector_norm", "vector_normalize", "vector_sum"),
}
SPARKS_OWN = (
    (set(filter(str.islower, functions.__all__)) - _OF_PYTHON) | _OF_SQL | ROW_FUNCTIONS
) - REACH_OUT
"""Functions that a query may call, by their names in SQL."""
