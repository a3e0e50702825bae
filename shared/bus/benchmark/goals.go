package main

import (
	"fmt"
	"time"
)

// goals compares the measurements of one run with the bus's goals.
type goals struct{ lines []string }

func (g *goals) ratio(what string, value, goal float64, atMost bool) {
	word, sign := "NOT MET", "at least"
	if atMost {
		sign = "at most"
	}
	if value >= goal && !atMost || value <= goal && atMost {
		word = "met"
	}
	g.lines = append(g.lines, fmt.Sprintf("  %-8s %-86s %6.2f, goal: %s %.1f", word, what, value, sign, goal))
}

// published judges one load.
func (g *goals) published(l load, found map[string]result) {
	ours, franz, watermill := found["bus"], found["franz-go"], found["watermill-kafka"]
	if ours.rate == 0 {
		return
	}
	if franz.cpu > 0 {
		g.ratio(fmt.Sprintf("CPU per GB of franz-go's, publishing %s", l), ours.cpu/franz.cpu, 1.3, true)
	}
	if watermill.rate > 0 && l.waits() {
		g.lines = append(g.lines, fmt.Sprintf("  %-8s %-86s %6.2f, the broker decides", "", fmt.Sprintf("times watermill-kafka's messages/s, publishing %s", l), ours.rate/watermill.rate))
	} else if watermill.rate > 0 {
		g.ratio(fmt.Sprintf("times watermill-kafka's messages/s, publishing %s", l), ours.rate/watermill.rate, 3, false)
	}
	if l.callers == 1 {
		g.ratio("ms until a lone message is acknowledged, median", float64(ours.p50)/float64(time.Millisecond), 1, true)
	}
}

func (g *goals) print() {
	fmt.Println("goals, from this run alone")
	for _, line := range g.lines {
		fmt.Println(line)
	}
	fmt.Println()
}
