package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// half is a part of the reports. What one half
// chooses, the other judges.
type half struct {
	name  string
	holds []bool // of each report
}

// split cuts the reports into two halves
// with about as many duplicates.
type split struct{ tuning, reporting half }

// byProject gives each project, the one with the most
// duplicates first, to the half that has fewer so far.
func byProject(reports []report) split {
	counts := map[string]int{}
	for i := range reports {
		counts[reports[i].Project] += 0
	}
	for _, i := range duplicatesOf(reports) {
		counts[reports[i].Project]++
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var members [2][]string
	var sums [2]int
	for _, name := range names {
		fewer := 0
		if sums[1] < sums[0] {
			fewer = 1
		}
		members[fewer], sums[fewer] = append(members[fewer], name), sums[fewer]+counts[name]
	}
	tuned := func(i int) bool { return slices.Contains(members[0], reports[i].Project) }
	return cut(reports, tuned, strings.Join(members[0], ", "), strings.Join(members[1], ", "))
}

// byTime cuts where half of the duplicates have come.
func byTime(reports []report) split {
	middle := len(reports) / 2
	if duplicates := duplicatesOf(reports); len(duplicates) > 0 {
		middle = duplicates[len(duplicates)/2]
	}
	day := reports[middle].Created.Format("2006-01-02")
	return cut(reports, func(i int) bool { return i < middle }, "errors before "+day, "errors from "+day)
}

func cut(reports []report, tuned func(i int) bool, tuning, reporting string) split {
	s := split{half{name: tuning}, half{name: reporting}}
	for i := range reports {
		s.tuning.holds, s.reporting.holds = append(s.tuning.holds, tuned(i)), append(s.reporting.holds, !tuned(i))
	}
	return s
}

// duplicatesOf are the reports whose group came before.
func duplicatesOf(reports []report) (duplicates []int) {
	seen := map[string]bool{}
	for i := range reports {
		if seen[reports[i].Group] {
			duplicates = append(duplicates, i)
		}
		seen[reports[i].Group] = true
	}
	return duplicates
}
