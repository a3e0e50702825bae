package groupingtest

import "fmt"

// Failure is an entry with an error of the
// given kind, whose trace has 12 lines.
func Failure(kind int) string {
	line := `{"timestamp":"2026-11-20T12:00:00.123Z","level":"error","message":"request failed","metadata":{"request":"7f3a9c21","user":"alice"},` +
		`"error":{"type":"java.lang.IllegalStateException","message":"cannot pay","stack_trace":[`
	for i := range 12 {
		line += fmt.Sprintf(`"at com.acme.pay.Gateway%s.charge%c(Gateway.java:%d)",`, Letters(kind), 'a'+i, 100+i)
	}
	return line[:len(line)-1] + `]}}`
}

// HotAndRare is the nth error of a sequence: 90 % are
// of one kind, the others of so many kinds in turn.
func HotAndRare(n, kinds int) string {
	if n%10 > 0 {
		return Failure(0)
	}
	return Failure(1 + n/10*7919%(kinds-1))
}

// Letters writes n without digits, which would be taken for a counter.
func Letters(n int) string {
	text := ""
	for ; n > 0; n /= 26 {
		text += string(rune('a' + n%26))
	}
	return text
}
