package s3

import (
	"bytes"
	"testing"
)

// FuzzListing reads the answer to a listing. It finds no more names than there are elements.
func FuzzListing(f *testing.F) {
	for _, text := range []string{
		"<ListBucketResult><Contents><Key>a&amp;b</Key></Contents></ListBucketResult>", "<Key></Key>", "<Key><Key></Key>",
		"<Key>", "</Key><Key>x</Key", "<Error><Code>NoSuchKey</Code><Message>m</Message></Error>",
	} {
		f.Add([]byte(text), []byte("a&b"))
	}
	f.Fuzz(func(t *testing.T, answer, key []byte) {
		all := names(answer)
		if most := bytes.Count(answer, []byte("</Key>")); len(all) > most {
			t.Errorf("%d names of at most %d", len(all), most)
		}
		if listed(answer, key) && (len(all) == 0 || all[0] != string(key)) {
			t.Errorf("%q is listed, and not the first of %q", key, all)
		}
		element(answer, string(key))
	})
}
