package soak

import (
	"context"
	"fmt"
	"slices"
)

// tiers in the order of Kept.Tiers.
var tiers = []string{"indie", "bootstrapper", "compliance", "scale"}

// monthsOfTier is how long a tenant that changes its tier keeps one:
// longer than a billing period, at whose end a smaller tier takes effect.
const monthsOfTier = 2

// changeTier changes a tenant to its other tier, in the middle of a
// month. The change before must have taken effect.
func (r *run) changeTier(ctx context.Context, t *tenant) error {
	if t.otherTier == "" || r.day%(monthsOfTier*r.Month) != r.Month/2 {
		return nil
	}
	if err := r.checkTier(ctx, t); err != nil {
		return err
	}
	t.tier, t.otherTier = t.otherTier, t.tier
	_, err := r.api.Subscribe(ctx, t.billing, t.organization, t.tier)
	return err
}

// latestRetention is the retention of an organization's latest block.
const latestRetention = `SELECT retention FROM ingest.blocks WHERE organization = $1 ORDER BY received_at DESC LIMIT 1`

// checkTier returns an error if the tier that a tenant chose is not in
// force, or does not set the retention of what it sends.
func (r *run) checkTier(ctx context.Context, t *tenant) error {
	found, err := r.api.Subscription(ctx, t.billing, t.organization)
	if err != nil {
		return err
	}
	if _, err := r.db.Exec(ctx, asSystem); err != nil {
		return err
	}
	var kept int
	if err := r.db.QueryRow(ctx, latestRetention, t.organization).Scan(&kept); err != nil {
		return err
	}
	if want := r.Kept.Tiers[slices.Index(tiers, t.tier)]; found.Tier != t.tier || found.RetentionDays != want || kept != want {
		return fmt.Errorf("an organization wanted %s, with %d days: it has %s with %d, and what it sent last is kept for %d",
			t.tier, want, found.Tier, found.RetentionDays, kept)
	}
	return nil
}
