package ui

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
)

// functions are those of templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"asset":    assetPath,
		"bytes":    Bytes,
		"count":    Count,
		"when":     Instant,
		"day":      day,
		"clock":    clock,
		"datetime": func(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) },
	}
}

// Instant formats a time for people, to the second.
func Instant(at time.Time) string {
	return day(at) + " " + clock(at)
}

func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

func clock(at time.Time) string { return at.UTC().Format(time.TimeOnly) + " UTC" }

// Count formats a whole number with separate thousands, such as 1,234,567.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, groups...), ",")
}

// Bytes formats a size for people: exact below 1 KiB, else with one
// decimal place, rounded down so that nothing looks used up or whole
// before it is.
func Bytes(n int64) string {
	if n > -1024 && n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	unit := int64(1024)
	for _, name := range []string{"KiB", "MiB", "GiB"} {
		if n > -unit*1024 && n < unit*1024 {
			return oneDecimal(n, unit, name)
		}
		unit *= 1024
	}
	return oneDecimal(n, unit, "TiB")
}

func oneDecimal(n, unit int64, name string) string {
	return fmt.Sprintf("%d.%d %s", n/unit, max(n, -n)%unit*10/unit, name)
}
