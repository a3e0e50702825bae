package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platform is a program that fails in many ways, and what runs it. In
// commands {tool} is the compiler or interpreter, {bin} its folder,
// {flags} are the variant's, {source} and {out} files.
type platform struct {
	name      string
	program   string // in testdata/programs
	file      string // as which it is run; "": its own name
	find      string // names and patterns of paths of its tools
	version   string // argument that prints it; "": --version
	build     string
	run       string
	unbuilt   string // runs the source where the builder is missing
	env       []string
	flags     []string // of the build; the first that works is the base
	variants  []dimension
	transform func(source string, build int) string
}

// setup is how a program is built and called.
type setup struct {
	folder   string
	file     string // of the program
	blank    int    // lines in front of it
	build    int    // of which release, see transform
	flags    string
	env      []string
	callers  string // how many more functions call
	id, name string // in messages
	mode     string // "caught", "crash" or "wrapped"
	joined   bool   // the trace is sent as one string
}

// dimension is one way in which two occurrences
// of an error differ. Its column has many.
type dimension struct {
	column, name string
	change       func(s *setup)
}

// everywhere is what differs between occurrences in every language.
var everywhere = []dimension{
	{"values", "other values", func(s *setup) { s.id, s.name = "93", "bob" }},
	{"1 caller", "1 more caller", func(s *setup) { s.callers = "1" }},
	{"3 callers", "3 more callers", func(s *setup) { s.callers = "3" }},
	{"one string", "one string", func(s *setup) { s.joined = true }},
	{"folder", "another folder", func(s *setup) { s.folder = "home/alice/work" }},
	{"lines", "moved lines", func(s *setup) { s.blank = 7 }},
}

var (
	uncaught = dimension{"form", "uncaught", func(s *setup) { s.mode = "crash" }}
	wrapped  = dimension{"form", "wrapped", func(s *setup) { s.mode = "wrapped" }}
)

func built(flags string) dimension {
	return dimension{"build", flags, func(s *setup) { s.flags = flags }}
}

// platforms are those of which programs exist.
var platforms = []platform{
	{
		name: "Go", program: "go/shop.go", find: "go ~/sdk/go*/bin/go ~/go/pkg/mod/golang.org/toolchain@*/bin/go", version: "version",
		build: "{tool} build {flags} -o {out} {source}", run: "{out}", env: []string{"GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0"},
		variants: []dimension{uncaught, built("-trimpath"), built("-ldflags=-s"), built("-gcflags=-l")},
	}, {
		name: "Python", program: "python/shop.py", find: "~/.pyenv/versions/*/bin/python3 python3 python3.*", run: "{tool} {source}",
		variants: []dimension{uncaught},
	}, {
		name: "Node", program: "node/shop.js", find: "node ~/.nvm/versions/node/*/bin/node", run: "{tool} {source}", variants: []dimension{uncaught},
	}, {
		name: "Minified", program: "node/shop.js", find: "node", run: "{tool} {source}", transform: minify, file: "main.3f9a1c2e.js",
		variants: []dimension{uncaught, {"build", "names of another release", func(s *setup) { s.build, s.file = 1, "main.b81d04f7.js" }}},
	}, {
		name: "Java", program: "java/Shop.java", find: "java /usr/lib/jvm/*/bin/java", build: "{bin}/javac {flags} -d {out} {source}",
		run:      "{tool} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp {out} com.acme.shop.Shop",
		unbuilt:  "{tool} {source}",
		variants: []dimension{uncaught, wrapped, built("-g:none")},
	}, {
		name: "Rust", program: "rust/shop.rs", find: "rustc ~/.rustup/toolchains/*/bin/rustc",
		build: "{tool} {flags} -o {out} {source}", run: "{out}", env: []string{"RUST_BACKTRACE=1"}, flags: []string{"-g"},
		variants: []dimension{
			{"form", "RUST_BACKTRACE=full", func(s *setup) { s.env = []string{"RUST_BACKTRACE=full"} }},
			built("-O"), built("-O -g"), built("-g -Csymbol-mangling-version=v0"),
		},
	},
	native("C", "c/shop.c", "gcc gcc-[0-9]* clang"),
	native("C++", "cpp/shop.cpp", "g++ g++-[0-9]* clang++"),
}

// native is a platform with a sanitizer or, where it does
// not link, with the addresses that glibc prints.
func native(name, program, find string) platform {
	const address = "-fsanitize=address"
	return platform{
		name: name, program: program, find: find, build: "{tool} {flags} -w -o {out} {source}", run: "{out}",
		env: []string{"ASAN_OPTIONS=handle_abort=1:detect_leaks=0"}, flags: []string{address + " -g", "-g -rdynamic"},
		variants: []dimension{
			built(address + " -O1 -g"), built(address + " -O2 -g"), built(address), built(address + " -O1"), built("-fsanitize=address,undefined -g"),
		},
	}
}

// chosen are the platforms that a list names; "": all.
func chosen(platforms []platform, only string) (some []platform) {
	for _, p := range platforms {
		if only == "" || slices.Contains(strings.Split(only, ","), p.name) {
			some = append(some, p)
		}
	}
	return some
}

// tool is an installed compiler or interpreter.
type tool struct{ path, version string }

var firstNumber = regexp.MustCompile(`\d[\d.]*`)

// tools are those of a platform that work, each version once.
func (p platform) tools() (found []tool) {
	var seen []string
	for _, pattern := range strings.Fields(p.find) {
		for _, path := range matches(pattern) {
			said, err := exec.Command(path, cmp.Or(p.version, "--version")).Output()
			line := first(string(said))
			if _, behind, ok := strings.Cut(line, " "); ok { // the name, which may be "gcc-12"
				line = behind
			}
			if err == nil && !slices.Contains(seen, line) {
				seen, found = append(seen, line), append(found, tool{path, firstNumber.FindString(line)})
			}
		}
	}
	return found
}

// matches are the files of a pattern, on
// PATH where it names no folder.
func matches(pattern string) (paths []string) {
	folders := []string{""}
	switch home, err := os.UserHomeDir(); {
	case !strings.Contains(pattern, "/"):
		folders = filepath.SplitList(os.Getenv("PATH"))
	case strings.HasPrefix(pattern, "~/") && err == nil:
		pattern = filepath.Join(home, pattern[2:])
	}
	for _, folder := range folders {
		found, _ := filepath.Glob(filepath.Join(folder, pattern)) // patterns are well formed
		paths = append(paths, found...)
	}
	return paths
}

// fill replaces the names in braces of a command.
func fill(command, flags string, values map[string]string) (words []string) {
	for _, word := range strings.Fields(strings.Replace(command, "{flags}", flags, 1)) {
		for name, value := range values {
			word = strings.ReplaceAll(word, name, value)
		}
		words = append(words, word)
	}
	return words
}

var (
	definition = regexp.MustCompile(`(?m)^(?:function|class) (\w+)`)
	use        = regexp.MustCompile(`[.']?\b[A-Za-z]\w*\b:?`)
	indent     = regexp.MustCompile(`(?m)^(\s+|//.*)`)
)

// minify gives the functions and classes of a script short names,
// in each build others, and puts all on one line.
func minify(source string, build int) string {
	short := map[string]string{}
	for i, found := range definition.FindAllStringSubmatch(source, -1) {
		i += 5 * build
		short[found[1]] = string(rune('a'+i%26)) + strings.Repeat("a", i/26)
	}
	source = use.ReplaceAllStringFunc(source, func(word string) string {
		if name, ok := short[word]; ok {
			return name
		}
		return word
	})
	return fmt.Sprintln(strings.ReplaceAll(indent.ReplaceAllString(source, ""), "\n", ""))
}
