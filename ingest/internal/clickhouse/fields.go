package clickhouse

import (
	"fmt"
	"strings"

	"github.com/weirlog/weir/ingest"
)

// A value is the expression of SQL for the value of a field in a text: ” for
// none, the number of its path and its JSON, or '?' and the whole text where only reading that can tell.
//
// It is certain where the text has no escapes, has the name once between quotes, and not at the end
// of a longer name with dots: then what is found at a path is all that there is. It has to stand in the text as
// it was found, as numbers might be written in another way.
type value struct {
	paths []string
	sql   string
}

const unclear = '?'

// valuesOf are those of some fields; false: names can't be written in a text without escapes.
func valuesOf(fields []ingest.Field) (values []value, ok bool) {
	for _, field := range fields {
		paths := field.Paths()
		if len(paths) == 0 {
			continue
		}
		if strings.ContainsFunc(field.String(), func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
			return nil, false
		}
		values = append(values, value{paths, sqlOf(paths)})
	}
	return values, true
}

func sqlOf(paths []string) string {
	name := paths[0][strings.LastIndexByte(paths[0], '.')+1:]
	key, longer := literal(`"`+name+`"`), literal("."+name+`"`)
	var found, number strings.Builder
	for i, path := range paths {
		names := make([]string, 0, 4)
		for part := range strings.SplitSeq(path, ".") {
			names = append(names, literal(part))
		}
		at := "JSONExtractRaw(text, " + strings.Join(names, ", ") + ")"
		fmt.Fprintf(&found, "%[1]s != '', %[1]s, ", at)
		fmt.Fprintf(&number, "%s != '', '%d', ", at, i)
	}
	raw := `replaceAll(multiIf(` + found.String() + `''), '\\\\/', '/')` // it escapes slashes, which the text does not
	behind := fmt.Sprintf("substring(text, position(text, %s) + %d, length(%s) + 1)", literal(`"`+name+`":`), len(name)+len(`"":`), raw)
	stands := fmt.Sprintf("%[1]s IN (concat(%[2]s, ','), concat(%[2]s, '}'))", behind, raw)
	return fmt.Sprintf(`multiIf(position(text, '\\') > 0 OR position(text, %[2]s) > 0, concat('?', text), countSubstrings(text, %[1]s) = 0, '',
		countSubstrings(text, %[1]s) = 1 AND %[3]s != '' AND %[4]s, concat(multiIf(%[5]s''), %[3]s), concat('?', text))`, key, longer, raw, stands, number.String())
}

// text is one that has a found value at its path, and nothing else.
func (v value) text(dst []byte, found string) []byte {
	path := v.paths[found[0]-'0']
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		dst = append(dst, `"`+name+`":{`...)
	}
	dst = append(dst, `"`+names[len(names)-1]+`":`+found[1:]...)
	return append(dst, strings.Repeat("}", len(names)-1)...)
}
