package clickhouse

import (
	"fmt"
	"strings"

	"github.com/weirlog/weir/ingest"
)

// sieve writes conditions of SQL. That of words is the expression of an index.
type sieve struct{}

const joined = "lower(concat(text, ' ', words))"

func (sieve) All(conditions []string) string { return all(conditions...) }

func (sieve) Either(conditions []string) string {
	for _, c := range conditions {
		if c == "" {
			return ""
		}
	}
	return "(" + strings.Join(conditions, " OR ") + ")"
}

func (sieve) Levels(set ingest.SeveritySet) string {
	var levels []string
	for level := ingest.SeverityNone; level <= ingest.SeverityFatal; level++ {
		if set.Has(level) {
			levels = append(levels, fmt.Sprint(uint8(level)))
		}
	}
	return "level IN (" + strings.Join(levels, ", ") + ")"
}

func (sieve) Words(words []string) string {
	return "hasAllTokens(" + joined + ", [" + literals(words) + "])"
}

func (sieve) Contains(part string, foreign bool) string {
	contains := `positionCaseInsensitive(text, ` + literal(part) + `) > 0 OR position(text, '\\u') > 0`
	if foreign {
		contains += ` OR NOT isValidASCII(text)`
	}
	return "(" + contains + ")"
}

// all joins conditions; empty ones say nothing.
func all(conditions ...string) string {
	var list []string
	for _, c := range conditions {
		if c != "" {
			list = append(list, c)
		}
	}
	switch len(list) {
	case 0:
		return ""
	case 1:
		return list[0]
	}
	return "(" + strings.Join(list, " AND ") + ")"
}

func where(conditions ...string) string {
	if joined := all(conditions...); joined != "" {
		return "WHERE " + joined
	}
	return ""
}

func notIn(column string, numbers []int64) string {
	if len(numbers) == 0 {
		return ""
	}
	return column + " NOT IN (" + strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]") + ")"
}

// scope are the conditions of a search but for its query and where it starts.
// They are exact.
func scope(organization string, search *ingest.Search, moved ingest.Moved) string {
	conditions := []string{"organization = " + literal(organization), fmt.Sprintf("move <= %d", moved.UpTo), notIn("move", moved.Except)}
	if search.Project != "" {
		conditions = append(conditions, "project = "+literal(search.Project))
	}
	if len(search.Hidden) > 0 {
		var hidden []string
		for project := range search.Hidden {
			hidden = append(hidden, project)
		}
		conditions = append(conditions, "project NOT IN ("+literals(hidden)+")")
	}
	if search.Levels != 0 {
		conditions = append(conditions, sieve{}.Levels(search.Levels))
	}
	if search.Environment != "" {
		conditions = append(conditions, "environment = "+literal(search.Environment))
	}
	if from := search.From; from != nil {
		conditions = append(conditions, fmt.Sprintf("seconds >= %d", from.Seconds))
		if from.Nanos > 0 {
			conditions = append(conditions, fmt.Sprintf("(seconds > %d OR nanos >= %d)", from.Seconds, from.Nanos))
		}
	}
	if to := search.To; to != nil && to.Nanos == 0 {
		conditions = append(conditions, fmt.Sprintf("seconds < %d", to.Seconds))
	} else if to != nil {
		conditions = append(conditions, fmt.Sprintf("seconds <= %[1]d AND (seconds < %[1]d OR nanos < %[2]d)", to.Seconds, to.Nanos))
	}
	return all(conditions...)
}

// behind is the condition that an entry comes after a place.
func behind(search *ingest.Search, after *ingest.Place) string {
	if after == nil {
		return ""
	}
	sign := "<"
	if search.OldestFirst {
		sign = ">"
	}
	return fmt.Sprintf("seconds %[1]s= %[2]d AND (seconds, nanos, batch, toInt64(number)) %[1]s (%[2]d, %[3]d, %[4]s, %[5]d)",
		sign, after.Time.Seconds, after.Time.Nanos, bytesLiteral(after.Batch), after.Index)
}
