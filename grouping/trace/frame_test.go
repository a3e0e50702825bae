package trace

import (
	"slices"
	"testing"
)

// Frames are parsed as the runtimes print them.
func TestFrames(t *testing.T) {
	for line, want := range map[string]struct {
		language Language
		frame    Frame
	}{
		"\tat org.apache.commons.lang3.StringEscapeUtils.escapeCsv(StringEscapeUtils.java:556)": {Java, Frame{"org.apache.commons.lang3.StringEscapeUtils", "escapeCsv", "StringEscapeUtils.java", 556, 0, false, 0, "", nil}},
		"at java.base/java.lang.Thread.run(Thread.java:829) ~[?:?]":                             {Java, Frame{"java.lang.Thread", "run", "Thread.java", 829, 0, false, 0, "", nil}},
		"> [exec] [junit] \tat com.acme.A$1.<init>(Native Method)":                              {Java, Frame{"com.acme.A$1", "<init>", "Native Method", 0, 0, true, 0, "", nil}},
		"at org/acme/camel/X.process(Delegate.java:90)[inlined]":                                {Java, Frame{"org/acme/camel/X", "process", "Delegate.java", 90, 0, true, 0, "", nil}},
		"    at module.exports.fuzz (/out/example/f.js:36:2)":                                   {JavaScript, Frame{"", "module.exports.fuzz", "/out/example/f.js", 36, 2, true, 0, "", nil}},
		"    at /out/src/core.ts:112:38":                                                        {JavaScript, Frame{"", "", "/out/src/core.ts", 112, 38, true, 0, "", nil}},
		"    at async f (file:///a.mjs:1:2)":                                                    {JavaScript, Frame{"", "async f", "file:///a.mjs", 1, 2, true, 0, "", nil}},
		"    at new X (C:\\app\\x.js:1:2)":                                                      {JavaScript, Frame{"", "X", "C:\\app\\x.js", 1, 2, true, 0, "", nil}},
		"    at eval (eval at f (http://a.example/x.js:7:9), <anonymous>:1:2)":                  {JavaScript, Frame{"", "eval", "eval code", 1, 2, false, 0, "", nil}},
		"    at Array.map (<anonymous>)":                                                        {JavaScript, Frame{"", "Array.map", "<anonymous>", 0, 0, false, 0, "", nil}},
		"    at async Promise.all (index 0)":                                                    {JavaScript, Frame{"", "async Promise.all", "index 0", 0, 0, false, 0, "", nil}},
		"foo@http://path/to/file.js:41:13":                                                      {JavaScript, Frame{"", "foo", "http://path/to/file.js", 41, 13, true, 0, "", nil}},
		"baz@http://h/file.js line 26 > eval line 2 > eval:1:30":                                {JavaScript, Frame{"", "baz", "eval code", 1, 30, false, 0, "", nil}},
		"http://path/to/file.js:48:22":                                                          {JavaScript, Frame{"", "", "http://path/to/file.js", 48, 22, true, 0, "", nil}},
		"forEach@[native code]":                                                                 {JavaScript, Frame{"", "forEach", "[native code]", 0, 0, false, 0, "", nil}},
		`  File "/x/tarfile.py", line 1571, in open`:                                            {Python, Frame{"", "open", "/x/tarfile.py", 1571, 0, true, 0, "", nil}},
		`  |   File "<string>", line 1, in <module>`:                                            {Python, Frame{"", "<module>", "<string>", 1, 0, true, 0, "", nil}},
		`File "/usr/lib/python3.11/site-packages/requests/api.py", line 3, in get`:              {Python, Frame{"", "get", "/usr/lib/python3.11/site-packages/requests/api.py", 3, 0, false, 0, "", nil}},
		"main.(*T).Method(0xc000010000, {0x1, 0x2}, ...)":                                       {Go, Frame{"main", "(*T).Method", "", 0, 0, true, 0, "", nil}},
		"github.com/a/b.F[...](...)\t/go/pkg/mod/github.com/a/b@v1.2.3/f.go:12 +0x1d":           {Go, Frame{"github.com/a/b", "F[...]", "/go/pkg/mod/github.com/a/b@v1.2.3/f.go", 12, 0, false, 0, "", nil}},
		"main.load(...)\t/go/pkg/mod/github.com/acme/tool@v1.2.3/main.go:12 +0x1d":              {Go, Frame{"main", "load", "/go/pkg/mod/github.com/acme/tool@v1.2.3/main.go", 12, 0, true, 0, "", nil}},
		"net/http.(*conn).serve(0x1, {0x2, 0x3})":                                               {Go, Frame{"net/http", "(*conn).serve", "", 0, 0, false, 0, "", nil}},
		"/a/b.rb:13:in `block (2 levels) in func'":                                              {Ruby, Frame{"", "block (2 levels) in func", "/a/b.rb", 13, 0, true, 0, "", nil}},
		"\tfrom /a/b.rb:13:in 'Klass#func'":                                                     {Ruby, Frame{"", "Klass#func", "/a/b.rb", 13, 0, true, 0, "", nil}},
		`#0 /a/b.php(12): Ns\Cls->fn(Array, 'x')`:                                               {PHP, Frame{`Ns\Cls`, "fn", "/a/b.php", 12, 0, true, 0, "", nil}},
		`#11 [internal function]: {closure}(Array)`:                                             {PHP, Frame{"", "{closure}", "[internal function]", 0, 0, false, 0, "", nil}},
		"   at A.B.C(String s, Int32 n) in /src/C.cs:line 42":                                   {DotNet, Frame{"A.B", "C", "/src/C.cs", 42, 0, true, 0, "", nil}},
		`   at A.B.<>c__DisplayClass3_0.<F>b__0(Object o)`:                                      {DotNet, Frame{"A.B.<>c__DisplayClass3_0", "<F>b__0", "", 0, 0, true, 0, "", nil}},
		"   at System.Collections.Generic.List`1..ctor()":                                       {DotNet, Frame{"System.Collections.Generic.List`1", ".ctor", "", 0, 0, false, 0, "", nil}},
		"   4: mycrate::foo::{{closure}}::h3e3f989126541ea9":                                    {Rust, Frame{"", "mycrate::foo::{{closure}}::h3e3f989126541ea9", "", 0, 0, true, 0, "", nil}},
	} {
		var got Trace
		got.Read("", "", []string{line}, nil, nil)
		if got.Language() != want.language || len(got.Spans()) != 1 || !slices.Equal(got.Frames(), []Frame{want.frame}) {
			t.Errorf("%q\n got %s %+v\nwant %s %+v", line, got.Language(), got.Frames(), want.language, want.frame)
		}
	}
}

// Prose, headers and log lines are no frames of any language.
func TestNoFrames(t *testing.T) {
	for _, line := range []string{
		"Traceback (most recent call last):", "java.lang.NullPointerException: x", "... 12 more", "--- End of stack trace from previous location ---",
		"goroutine 1 [running]:", "    return int(x)", "            ^^^^^^^^", "at the end of the day", "mail me@example.com", "12:30:45 it broke", "{main}",
		"GET /index.html HTTP/1.1", "error: (null)", "see https://example.com/a", "v1.2.3", "config.yaml", "TypeError: x is not a function",
	} {
		for i := range syntaxes {
			if f := (Frame{}); syntaxes[i].frame(newLine(line), &f) {
				t.Errorf("%q is a frame of %s: %+v", line, syntaxes[i].language, f)
			}
		}
	}
}
