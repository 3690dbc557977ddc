# make demo     solve a real cluster: what greedy leaves idle, what the optimiser leaves idle, and the proven bound
# make test     every check there is
# Both set up .venv themselves. PYTHON=python3.12 chooses the interpreter.

export PYTHON
# what a shell has set for another project must not reach this one
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
BIN := .venv/bin
.PHONY: demo test format clean
.NOTPARALLEL:

demo:
	@sh .ci/venv
	@$(BIN)/placement compare openb --solvers random,best-fit,fgd,exact --time-limit 60

test:
	@sh .ci/venv dev,notebook
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -n auto

format:
	@sh .ci/venv dev,notebook
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
