# make lab        JupyterLab on the chapter's start page   ARGS=--no-browser, ARGS=--port=9999
# make test       every test                               ARGS="-k lemma"
# make execute    run the sections again                   ARGS="03-cpi-bound 04-trpo-step"
# make book       the site, build/site/index.html
# make bench      what is fast, and how much
#
# Each sets up .venv first if it is missing, broken or out of date. PYTHON=python3.12 chooses the
# interpreter. Nothing is written outside this directory but the package manager's cache.

.PHONY: lab test execute book bench setup packages package
.DEFAULT_GOAL := lab

# A reader's own settings and packages must not reach in, nor ours out.
unexport JUPYTER_CONFIG_PATH JUPYTER_PATH MPLBACKEND PYTHONHOME PYTHONPATH PYTHONSTARTUP
export IPYTHONDIR := $(CURDIR)/.venv/home/ipython
export JUPYTER_CONFIG_DIR := $(CURDIR)/.venv/home/jupyter
export JUPYTER_DATA_DIR := $(CURDIR)/.venv/home/jupyter-data
export JUPYTER_RUNTIME_DIR := $(CURDIR)/.venv/home/jupyter-runtime
export JUPYTERLAB_SETTINGS_DIR := $(CURDIR)/.venv/home/jupyter/lab/user-settings
export JUPYTERLAB_WORKSPACES_DIR := $(CURDIR)/.venv/home/jupyter/lab/workspaces
export MPLCONFIGDIR := $(CURDIR)/.venv/home/matplotlib
export PRE_COMMIT_HOME := $(CURDIR)/.venv/home/pre-commit
export PYTHONNOUSERSITE := 1

python := .venv/bin/python
pip := env PIP_USER=0 PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 TMPDIR="$(CURDIR)/.venv/tmp" \
  $(python) -m pip install
version := "import sys; print(sys.version_info[:2])"

# The address is the start page's; nothing is fetched from elsewhere (news, updates, extensions).
lab: setup
	exec $(python) -m jupyterlab --ServerApp.root_dir=. \
	  --LabApp.default_url=/lab/tree/notebooks/00-start.ipynb --LabApp.news_url=None \
	  --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate \
	  --LabApp.extension_manager=readonly --LanguageServerManager.autodetect=False \
	  --KernelManager.transport_encryption=auto \
	  $$(test "$$(id -u)" != 0 || echo --allow-root) $(ARGS)

test: setup
	$(python) -m pytest -n 2 --dist loadfile $(ARGS)

execute: setup
	$(python) book/sections.py execute $(ARGS)

book: setup
	OMP_NUM_THREADS=1 $(python) book/website.py

bench: setup
	OMP_NUM_THREADS=1 $(python) -m tests.bench $(ARGS)

# What was installed is written into .venv last, so an interrupted set-up is done again: the
# packages when the lock changed or their interpreter is gone, this package when it has moved too.
setup:
	@cmp -s requirements.lock .venv/packages && $(python) -c "import flit_core" 2>/dev/null \
	  && $(if $(PYTHON),test "$$($(python) -c $(version))" = "$$("$(PYTHON)" -c $(version))",:) \
	  || $(MAKE) --no-print-directory packages
	@{ cat pyproject.toml && pwd; } | cmp -s - .venv/package \
	  || $(MAKE) --no-print-directory package

packages:
	@found=; for name in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
	  "$$name" -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null || continue; \
	  found="$$name"; break; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "Python 3.11 or newer is needed; $(or $(PYTHON),python3) is" \
	    "$$("$(or $(PYTHON),python3)" --version 2>&1)." \
	    "Install one, or name it: make lab PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	if ! "$$found" -c "import ensurepip, venv" 2>/dev/null; then \
	  echo "$$found cannot make virtual environments." \
	    "On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; \
	fi; \
	echo "Setting up .venv with $$("$$found" --version): some minutes, the first time only"; \
	rm -rf .venv && "$$found" -m venv .venv && mkdir .venv/home .venv/tmp
	$(pip) --requirement requirements.lock
	@cp requirements.lock .venv/packages

# A student's JupyterLab shows neither the instructor's tools nor a question about news.
package:
	@rm -rf .venv/lib/python*/site-packages/trust_region_companion-*
	$(pip) --quiet --no-deps --no-build-isolation --editable .
	@mkdir -p .venv/etc/jupyter/labconfig
	@printf '{"disabledExtensions": {%s: true, %s: true}}\n' '"@jupyter/nbgrader"' \
	  '"@jupyterlab/apputils-extension:announcements"' > .venv/etc/jupyter/labconfig/page_config.json
	@{ cat pyproject.toml && pwd; } > .venv/package
