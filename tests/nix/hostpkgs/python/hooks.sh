# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by the builds of python/default.nix: the phases that nixpkgs' hooks for Python add.

step() { PYTHONPATH=$PYTHONPATH:${stepTools// /:} python3 "$steps" "$@"; }

buildPython() {
	if [[ ${format-} == wheel ]]; then
		wheel=$PWD/${src#/nix/store/*-}
		ln -s "$src" "$wheel"
	else
		cp -r "$src" source
		chmod -R u+w source
		cd source || return
		runHook postPatch
		wheel=$(step build)
	fi
	step install "$wheel" "$out"
	mkdir -p "$out/nix-support"
	echo "$propagatedBuildInputs" >"$out/nix-support/propagated-build-inputs"
	addInput "$out"
	runHook postFixup
	step check "$out"
	local module
	for module in ${pythonImportsCheck-}; do
		(cd "$out" && python3 -c "import $module")
	done
	if [[ -n ${enabledTestPaths-} && -n ${doCheck-1} ]]; then
		runHook preCheck
		local paths
		read -ra paths <<<"$enabledTestPaths"
		python3 -m pytest --numprocesses "$NIX_BUILD_CORES" "${paths[@]}"
	fi
}

# The modules of a package and of all that it needs.
buildPythonPath() {
	local PATH=$PATH PYTHONPATH=""
	local -A seen=()
	addInput "$1"
	program_PYTHONPATH=$PYTHONPATH
}

patchPythonScript() {
	sed -i "2i import site; [site.addsitedir(path) for path in '$program_PYTHONPATH'.split(':')]" "$1"
}
