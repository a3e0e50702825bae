package ingest

import "slices"

// GroupsOf returns the mask and the pattern of each message.
func GroupsOf(messages []string) (masks, patterns []string) {
	for _, message := range messages {
		masks = append(masks, string(appendMask(nil, []byte(message))))
	}
	into := joined(slices.Compact(slices.Sorted(slices.Values(masks))))
	for i, mask := range masks {
		masks[i], patterns = patternText(mask), append(patterns, patternText(into[mask]))
	}
	return masks, patterns
}
