package admission

import (
	"net/netip"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
)

// maxClients is how many client networks are kept apart.
const maxClients = 1 << 16

// Clients limits requests that carry no valid key, per client network.
type Clients struct {
	perMinute int
	networks  *fairshare.Table[netip.Prefix]
	waste     fairshare.Rate
	wasted    *fairshare.Table[netip.Prefix] // of bytes
}

// NewClients allows each network perMinute such requests, at least 1.
func NewClients(perMinute int) *Clients {
	return &Clients{
		perMinute: max(perMinute, 1), networks: fairshare.NewTable[netip.Prefix](maxClients), wasted: fairshare.NewTable[netip.Prefix](maxClients),
	}
}

// LimitWaste limits the wasted bytes of each network. It is called before use.
func (c *Clients) LimitWaste(limit fairshare.Rate) { c.waste = limit }

// Waste charges a network for wasted bytes.
func (c *Clients) Waste(network netip.Prefix, now time.Time, bytes int64) {
	c.wasted.Spend(now, network, bytes, c.waste)
}

// Wait returns how long a network's waste delays its next body.
func (c *Clients) Wait(network netip.Prefix, now time.Time) time.Duration {
	return c.wasted.Wait(now, network, c.waste)
}

// Take takes a token of network.
func (c *Clients) Take(network netip.Prefix, now time.Time) fairshare.Result {
	return c.networks.Take(now, c.ask(network))
}

// Give returns a token of network: its request carried a valid key after all.
func (c *Clients) Give(network netip.Prefix, now time.Time) { c.networks.Refund(now, c.ask(network)) }

// Len is how many networks are kept.
func (c *Clients) Len() int { return c.networks.Len() }

func (c *Clients) ask(network netip.Prefix) fairshare.KeyLimit[netip.Prefix] {
	return fairshare.KeyLimit[netip.Prefix]{Scope: fairshare.ScopeClient, Key: network, PerMinute: c.perMinute}
}
