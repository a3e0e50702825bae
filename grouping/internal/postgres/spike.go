package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
)

// spikesOf are the hours of groups that spike, the earliest first.
type spikesOf map[*change][]grouping.Spike // bounded by the groups of a transaction

// findSpikes looks at the hours of the present that may spike. The days of changes must be
// saved. Each member of a family is looked at by itself, and the spike is the head's.
func findSpikes(ctx context.Context, tx pgx.Tx, changes []*change) (spikesOf, error) {
	byGroup := map[groupKey]*change{} // bounded by the changes
	for _, ch := range changes {
		if ch.heads || ch.into == "" {
			byGroup[groupKey{ch.Organization, ch.group}] = ch
		}
	}
	spikes := spikesOf{}
	var busy []*change
	var organizations, groups []string
	var since []time.Time
	for _, ch := range changes {
		if ch.heads {
			continue
		}
		head := byGroup[groupKey{ch.Organization, cmp.Or(ch.into, ch.group)}]
		if hours := ch.busyHours(head.spiked); len(hours) > 0 {
			busy, organizations, groups = append(busy, ch), append(organizations, ch.Organization), append(groups, ch.group)
			since = append(since, dayAt((hours[0]-grouping.SpikeHours)/grouping.HoursOfDay))
		}
	}
	if len(busy) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `
		SELECT n, d.day, d.counted->'hours' FROM unnest($1::text[], $2::text[], $3::date[]) WITH ORDINALITY AS k (organization, error_group, since, n)
		  JOIN group_days d ON (d.organization, d.error_group) = (k.organization, k.error_group) AND d.day >= k.since`, organizations, groups, since)
	if err != nil {
		return nil, err
	}
	history := make([]map[int64]int64, len(busy)) // by the number of the hour; bounded by the days that are kept
	var n int64
	var day time.Time
	var hours map[int64]int64
	_, err = pgx.ForEachRow(rows, []any{&n, &day, &hours}, func() error {
		if history[n-1] == nil {
			history[n-1] = map[int64]int64{}
		}
		for hour, errors := range hours {
			history[n-1][grouping.HourOf(day)+hour] = errors
		}
		hours = nil
		return nil
	})
	for i, ch := range busy {
		head := byGroup[groupKey{ch.Organization, cmp.Or(ch.into, ch.group)}]
		for _, hour := range ch.busyHours(head.spiked) {
			if s, found := spikeIn(history[i], hour); found {
				spikes[head] = append(spikes[head], s)
			}
		}
	}
	return spikes, err
}

func spikeIn(history map[int64]int64, hour int64) (grouping.Spike, bool) {
	before := make([]int64, grouping.SpikeHours)
	for i := range before {
		before[i] = history[hour-grouping.SpikeHours+int64(i)]
	}
	return grouping.FindSpike(grouping.HourAt(hour), history[hour], before)
}

// busyHours are the hours of the present with enough errors for another
// spike than the last one.
func (ch *change) busyHours(spiked time.Time) (hours []int64) {
	for _, day := range ch.Days.Sorted() {
		for i, errors := range day.Hours {
			hour := day.Number*grouping.HoursOfDay + int64(i)
			if day.Fresh&(1<<i) != 0 && errors >= grouping.MinSpike && grouping.NewSpike(grouping.HourAt(hour), spiked) {
				hours = append(hours, hour)
			}
		}
	}
	return hours
}

// spike adds the decisions that follow from spikes, with errors up to a time.
func (m *DecidedGroup) spike(spikes []grouping.Spike, last time.Time) {
	state := m.Group.State
	for _, d := range m.Decisions {
		state.Apply(d)
	}
	slices.SortFunc(spikes, func(a, b grouping.Spike) int { return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(b.Count, a.Count)) })
	for _, s := range spikes {
		at := s.Hour.Add(time.Hour - time.Microsecond)
		if last.Before(at) {
			at = last
		}
		if d, follows := state.Spiked(s, m.Group.Version+int64(len(m.Decisions)), at); follows {
			state.Apply(d)
			m.Decisions = append(m.Decisions, d)
		}
	}
}
