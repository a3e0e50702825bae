package postgres

import (
	"context"
	"time"

	"github.com/axiomhq/hyperloglog"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/pg"
)

// Numbers are the sums of some groups and days.
type Numbers struct {
	Hours map[int64]int64                           // errors by the number of the hour since 1970; bounded by the days that are kept
	Tags  [len(grouping.Tags)]grouping.Distribution // those of grouping.Tags
	Users int64                                     // whom they affected, by UsersError
}

// Every returns the numbers of errors from one time to another, in steps of whole hours.
func (n Numbers) Every(from, to time.Time, step time.Duration) []int64 {
	counts := make([]int64, max(0, to.Sub(from)/step))
	for hour, errors := range n.Hours {
		if i := grouping.HourAt(hour).Sub(from) / step; !grouping.HourAt(hour).Before(from) && int(i) < len(counts) {
			counts[i] += errors
		}
	}
	return counts
}

// daysOf are the days of groups and what is merged into them, with the group as head.
const daysOf = `(SELECT coalesce(nullif(g.merged_into, ''), g.id) AS head, d.* FROM error_groups g
	JOIN group_days d ON (d.organization, d.error_group) = (g.organization, g.id)
	WHERE g.organization = $1 AND (g.id = ANY ($2) OR g.merged_into <> '' AND g.merged_into = ANY ($2))) days`

// FindNumbers returns what is counted of groups from the day of one instant to
// that of another. tx must act as the organization.
func FindNumbers(ctx context.Context, tx pgx.Tx, organization pg.Organization, groups []string, from, to time.Time) (n Numbers, err error) {
	rows, err := tx.Query(ctx, `SELECT day, counted, users FROM `+daysOf+` WHERE day BETWEEN $3::date AND $4::date`, organization, groups, from.UTC(), to.UTC())
	if err != nil {
		return n, err
	}
	n.Hours = map[int64]int64{}
	var sketches [][]byte
	var tags [len(grouping.Tags)][]grouping.Distribution
	var at time.Time
	var s storedDay
	_, err = pgx.ForEachRow(rows, []any{&at, &s.counted, &s.users}, func() error {
		for hour, errors := range s.counted.Hours {
			n.Hours[grouping.HourOf(at)+hour] += errors
		}
		for i, tag := range grouping.Tags {
			tags[i] = append(tags[i], s.counted.Tags[tag])
		}
		sketches = append(sketches, s.users)
		s = storedDay{}
		return nil
	})
	if err != nil {
		return n, err
	}
	for i, of := range tags {
		n.Tags[i] = grouping.SumOf(of...)
	}
	n.Users, err = countUsers(sketches)
	return n, err
}

// Recent is what happened in a group of late.
type Recent struct {
	From   time.Time // the first of the hours
	Hours  grouping.HourCounts
	Before int64 // errors in as many hours before
	Users  int64 // of the last RecentDays, by UsersError
}

// RecentDays is of how many days the users of a list are counted.
const RecentDays = 7

// FindRecent returns what happened in groups until now, by their ids. tx must act as the organization.
func FindRecent(ctx context.Context, tx pgx.Tx, organization pg.Organization, groups []string, now time.Time) (
	recent map[string]*Recent, err error,
) {
	last := grouping.HourOf(now)
	first := last - grouping.HoursOfDay + 1
	recent = map[string]*Recent{} // bounded by the groups of a page
	for _, id := range groups {
		recent[id] = &Recent{From: grouping.HourAt(first)}
	}
	rows, err := tx.Query(ctx, `SELECT head, day, counted->'hours', users FROM `+daysOf+` WHERE day > $3::date`,
		organization, groups, now.UTC().AddDate(0, 0, -RecentDays))
	if err != nil {
		return nil, err
	}
	sketches := map[string][][]byte{} // by group; bounded by the groups of a page
	var id string
	var day time.Time
	var hours map[int64]int64
	var sketch []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &day, &hours, &sketch}, func() error {
		for hour, errors := range hours {
			switch at := grouping.HourOf(day) + hour - first; {
			case at >= 0 && at < grouping.HoursOfDay:
				recent[id].Hours[at] += errors
			case at < 0 && at >= -grouping.HoursOfDay:
				recent[id].Before += errors
			}
		}
		sketches[id] = append(sketches[id], sketch)
		hours, sketch = nil, nil
		return nil
	})
	for id, of := range sketches {
		if err == nil {
			recent[id].Users, err = countUsers(of)
		}
	}
	return recent, err
}

// countUsers counts those of all sketches; nil has none.
func countUsers(sketches [][]byte) (int64, error) {
	var all *hyperloglog.Sketch
	for _, sketch := range sketches {
		if sketch == nil {
			continue
		}
		of, err := readUsers(sketch)
		if err != nil {
			return 0, err
		}
		if all == nil {
			all = of
		} else if err := all.Merge(of); err != nil {
			return 0, err
		}
	}
	if all == nil {
		return 0, nil
	}
	return int64(all.Estimate()), nil //nolint:gosec // nobody has so many users
}
