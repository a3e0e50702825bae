package ui

import (
	"net/http"
	"slices"
)

// A Level is that of an entry or an error. The template "level" shows it.
type Level string

// Levels returns words as levels.
func Levels(words []string) (levels []Level) {
	for _, word := range words {
		levels = append(levels, Level(word))
	}
	return levels
}

// Tone is the class of the level's badge; the word is for those
// who do not see color.
func (l Level) Tone() string {
	switch l {
	case "error", "fatal":
		return "fault"
	case "warn":
		return "warn"
	case "info":
		return "accent"
	}
	return ""
}

// LevelChecks filters by the repeatable parameter "level" of r.
func LevelChecks(r *http.Request) Checks {
	checks := Checks{Name: "level", Legend: "Levels"}
	chosen := r.URL.Query()["level"]
	for _, level := range []string{"debug", "info", "warn", "error", "fatal"} {
		checks.Choices = append(checks.Choices, Choice{Value: level, Text: level, Selected: slices.Contains(chosen, level)})
	}
	return checks
}
