package grouping

import (
	"fmt"
	"os"
	"strings"
)

// fieldVariants are whole traces as runtimes print them, with the
// text around. testdata/traces.txt holds them: "=== base NAME" begins
// an error, "=== same" what must join it, "=== other" what must not.
var fieldVariants = readVariants("testdata/traces.txt")

func readVariants(path string) (all []variants) {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	for n, part := range strings.Split(string(text), "=== ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		what, name, _ := strings.Cut(head, " ")
		if what == "base" {
			all = append(all, variants{name, readError(body), map[string]Error{}, map[string]Error{}})
			continue
		}
		one := all[len(all)-1]
		map[string]map[string]Error{"same": one.same, "other": one.other}[what][fmt.Sprintf("%s, part %d of the file", what, n)] = readError(body)
	}
	return all
}

// readError reads "type: " and "message: ", if present, and the trace.
func readError(s string) (e Error) {
	for _, member := range []struct {
		name string
		into *string
	}{{"type: ", &e.Type}, {"message: ", &e.Message}} {
		if rest, ok := strings.CutPrefix(s, member.name); ok {
			*member.into, s, _ = strings.Cut(rest, "\n")
		}
	}
	e.StackTrace = strings.Split(strings.Trim(s, "\n"), "\n")
	return e
}
