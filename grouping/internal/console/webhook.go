package console

import "github.com/weirlog/weir/shared/identity"

// webhookPairs are webhooks to choose from: their ids, and what people call them.
func webhookPairs(all []identity.Webhook) (pairs [][2]string) {
	hosts := map[string]int{} // bounded by the webhooks of an organization
	for _, w := range all {
		hosts[w.Host]++
	}
	for _, w := range all {
		text := w.Host
		if hosts[w.Host] > 1 {
			text += " " + w.ID
		}
		if !w.On {
			text += " (switched off)"
		}
		pairs = append(pairs, [2]string{w.ID, text})
	}
	return pairs
}
