#!/bin/sh
# What a local Spark starts as its Python; -P: the modules beside that file are not to be found by their names.
exec "${PENSTOCK_PYTHON:-python3}" -P "${0%/*}/python_process.py" "$@"
