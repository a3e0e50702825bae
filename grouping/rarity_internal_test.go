package grouping

import "testing"

// Two traces are as much alike as the rare calls that they share.
func TestAlignment(t *testing.T) {
	var project [][]int32
	for range 100 {
		project = append(project, []int32{1, 2, 2})
	}
	r := RarityAmong(append(project, []int32{3, 1}))
	query := []int32{3, 1, 2}
	same, rare, common := r.Alignment(query, query), r.Alignment(query, []int32{3}), r.Alignment(query, []int32{1, 2})
	if same < 0.999 || same > 1 || rare <= common || common <= 0 {
		t.Errorf("alike: itself %v, by a rare call %v, by common ones %v", same, rare, common)
	}
	if none := r.Alignment(query, []int32{4}); none != 0 || r.Alignment(nil, query) != 0 {
		t.Errorf("alike without a common call: %v", none)
	}
}
