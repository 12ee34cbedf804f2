package nullserver

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// etag is the ETag of all objects and parts. Its form, that of an object in parts, says that it is not the MD5 sum of
// the content, which clients would verify otherwise.
const etag = `"00000000000000000000000000000000-1"`

const (
	declaration = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	namespace   = ` xmlns="http://s3.amazonaws.com/doc/2006-03-01/"`
	uploadID    = "null" // of all multipart uploads
)

// facts are the texts about all objects, which are made once.
type facts struct {
	entity string // headers of an object, after the value of Content-Length
	copied string // content of the results of a copy: time and ETag
}

// factsAt returns the facts of objects that were last modified at t.
func factsAt(t time.Time) facts {
	t = t.UTC()
	return facts{
		entity: "\r\nAccept-Ranges: bytes\r\nContent-Type: application/octet-stream\r\nETag: " + etag +
			"\r\nLast-Modified: " + t.Format(http.TimeFormat) + "\r\n",
		copied: "<LastModified>" + t.Format("2006-01-02T15:04:05.000Z") + "</LastModified><ETag>" + escaped(etag) +
			"</ETag>",
	}
}

// subresources are the keys of queries that make a request another one than that of the bucket or object itself.
var subresources = strings.Fields("accelerate acl analytics append attributes cors delete encryption " +
	"intelligent-tiering inventory legal-hold lifecycle location logging metadataConfiguration metadataTable metrics " +
	"notification object-lock ownershipControls policy policyStatus publicAccessBlock replication requestPayment " +
	"restore retention select session tagging torrent uploadId uploads versioning versions website")

// subresource returns the subresource that a query names, or "".
func subresource(query string) string {
	for len(query) > 0 {
		var part string
		part, query, _ = strings.Cut(query, "&")
		if key, _, _ := strings.Cut(part, "="); slices.Contains(subresources, key) {
			return key
		}
	}
	return ""
}

// s3 answers a request of S3.
func (k *conn) s3(q *request, bucket, key string) error {
	sub := subresource(q.query)
	switch {
	case bucket == "":
		return k.service(q, sub)
	case key == "":
		return k.bucket(q, sub, bucket)
	case sub != "":
		return k.ofObject(q, sub, bucket, key)
	}
	switch q.method {
	case "GET", "HEAD":
		return k.object(q, bucket, key)
	case "PUT":
		if q.copied {
			return k.result("CopyObjectResult", k.facts.copied)
		}
		return k.stored()
	case "DELETE":
		return k.send("204 No Content", "", nil)
	}
	return k.notImplemented(q, sub)
}

// service answers a request of no bucket.
func (k *conn) service(q *request, sub string) error {
	switch {
	case q.method == "GET" && sub == "":
		return k.result("ListAllMyBucketsResult", "<Owner><ID>null</ID><DisplayName>null</DisplayName></Owner>"+
			"<Buckets></Buckets>")
	case q.head && sub == "":
		return k.send("200 OK", "", nil)
	}
	return k.notImplemented(q, sub)
}

// bucket answers a request of a bucket or one of its subresources.
func (k *conn) bucket(q *request, sub, bucket string) error {
	switch q.method + " " + sub {
	case "GET ":
		return k.list(q, bucket)
	case "HEAD ":
		return k.send("200 OK", "", nil)
	case "PUT ":
		return k.send("200 OK", "Location: /"+bucket+"\r\n", nil)
	case "DELETE ":
		return k.send("204 No Content", "", nil)
	case "GET location":
		return k.result("LocationConstraint", "") // us-east-1
	case "GET versioning":
		return k.result("VersioningConfiguration", "")
	case "PUT versioning":
		return k.send("200 OK", "", nil)
	case "GET versions":
		return k.result("ListVersionsResult", "<Name>"+escaped(plain(bucket))+"</Name><MaxKeys>1000</MaxKeys>"+
			"<IsTruncated>false</IsTruncated>")
	case "GET uploads":
		return k.result("ListMultipartUploadsResult", "<Bucket>"+escaped(plain(bucket))+"</Bucket>"+
			"<MaxUploads>1000</MaxUploads><IsTruncated>false</IsTruncated>")
	case "POST delete":
		return k.deleteAll(q)
	}
	return k.notImplemented(q, sub)
}

// ofObject answers a request of a subresource of an object.
func (k *conn) ofObject(q *request, sub, bucket, key string) error {
	names := "<Bucket>" + escaped(plain(bucket)) + "</Bucket><Key>" + escaped(plain(key)) + "</Key>"
	switch q.method + " " + sub {
	case "POST uploads":
		return k.result("InitiateMultipartUploadResult", names+"<UploadId>"+uploadID+"</UploadId>")
	case "PUT uploadId":
		if q.copied {
			return k.result("CopyPartResult", k.facts.copied)
		}
		return k.stored()
	case "POST uploadId":
		return k.result("CompleteMultipartUploadResult", "<Location>http://"+k.c.LocalAddr().String()+
			escaped(q.path)+"</Location>"+names+"<ETag>"+escaped(etag)+"</ETag>")
	case "GET uploadId":
		return k.result("ListPartsResult", names+"<UploadId>"+uploadID+"</UploadId><MaxParts>1000</MaxParts>"+
			"<IsTruncated>false</IsTruncated>")
	case "DELETE uploadId", "DELETE tagging":
		return k.send("204 No Content", "", nil)
	case "PUT tagging", "PUT retention", "PUT legal-hold":
		return k.send("200 OK", "", nil)
	case "GET tagging":
		return k.result("Tagging", "<TagSet></TagSet>")
	case "GET retention":
		return k.result("Retention", "")
	case "GET legal-hold":
		return k.result("LegalHold", "<Status>OFF</Status>")
	}
	return k.notImplemented(q, sub)
}

// list answers with an empty list of objects, by version 1 or 2 of the request.
func (k *conn) list(q *request, bucket string) error {
	asked, err := url.ParseQuery(q.query)
	if err != nil {
		return k.fail(q, "400 Bad Request", "InvalidArgument", "the query cannot be parsed")
	}
	as := func(text string) string { return escaped(text) }
	content := "<Name>" + escaped(plain(bucket)) + "</Name>"
	if asked.Get("encoding-type") == "url" {
		as = func(text string) string { return escaped(url.QueryEscape(text)) }
		content += "<EncodingType>url</EncodingType>"
	}
	content += "<Prefix>" + as(asked.Get("prefix")) + "</Prefix>"
	if d := asked.Get("delimiter"); d != "" {
		content += "<Delimiter>" + as(d) + "</Delimiter>"
	}
	most := asked.Get("max-keys")
	if most == "" {
		most = "1000"
	}
	if asked.Get("list-type") == "2" {
		content += "<KeyCount>0</KeyCount>"
	} else {
		content += "<Marker>" + as(asked.Get("marker")) + "</Marker>"
	}
	return k.result("ListBucketResult", content+"<MaxKeys>"+escaped(most)+"</MaxKeys><IsTruncated>false</IsTruncated>")
}

// deleteAll answers a request to delete several objects.
func (k *conn) deleteAll(q *request) error {
	var asked struct {
		XMLName xml.Name `xml:"Delete"`
		Quiet   bool
		Objects []struct {
			Key       string
			VersionID string `xml:"VersionId"`
		} `xml:"Object"`
	}
	if err := xml.Unmarshal(k.body, &asked); err != nil || len(asked.Objects) == 0 {
		return k.fail(q, "400 Bad Request", "MalformedXML", "the body is no list of objects to delete")
	}
	var b strings.Builder
	for _, o := range asked.Objects {
		if asked.Quiet {
			break // only failures are named
		}
		b.WriteString("<Deleted><Key>" + escaped(o.Key) + "</Key>")
		if o.VersionID != "" {
			b.WriteString("<VersionId>" + escaped(o.VersionID) + "</VersionId>")
		}
		b.WriteString("</Deleted>")
	}
	return k.result("DeleteResult", b.String())
}

// result sends an XML document.
func (k *conn) result(name, content string) error {
	return k.send("200 OK", "Content-Type: application/xml\r\n",
		[]byte(declaration+"<"+name+namespace+">"+content+"</"+name+">"))
}

func (k *conn) notImplemented(q *request, sub string) error {
	message := "the null server does not have " + q.method + " " + q.path
	if sub != "" {
		message += " with " + sub
	}
	return k.fail(q, "501 Not Implemented", "NotImplemented", message)
}

// fail sends an error. As of all responses to HEAD, its content is left out there.
func (k *conn) fail(q *request, status, code, message string) error {
	const headers = "Content-Type: application/xml\r\n"
	if q.head {
		return k.send(status, headers, nil)
	}
	return k.send(status, headers, fmt.Appendf(nil, declaration+"<Error><Code>%s</Code><Message>%s</Message>"+
		"<Resource>%s</Resource><RequestId>null</RequestId></Error>", code, escaped(message), escaped(q.path)))
}

// plain decodes a part of a path. One that is not encoded properly is returned as it is.
func plain(text string) string {
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

// escaped is a text in XML.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}
