# Prints the reads of a random genome as FASTA. The same seed gives the same reads with any awk: the generator is that
# of Park and Miller, whose products are exact in a double. The genome is kept in pieces, so that long ones are not
# copied for each read.
function random() { x = x * 16807 % 2147483647; return (x - 1) / 2147483646 }
BEGIN {
    split("A C G T", base, " ")
    x = seed % 2147483646 + 1
    for (i = 0; i < 20; i++) random() # the first numbers of neighbouring seeds are alike
    for (i = 0; i < genome; i++) {
        piece = piece base[int(random() * 4) + 1]
        if (i % 1000 == 999 || i == genome - 1) {
            pieces[int(i / 1000)] = piece
            piece = ""
        }
    }
    for (n = 0; n < reads; n++) {
        at = int(random() * (genome - length_ + 1))
        i = int(at / 1000)
        read = substr(pieces[i] pieces[i + 1], at % 1000 + 1, length_)
        if (random() * 100 < errors) { # one wrong base
            at = int(random() * length_)
            read = substr(read, 1, at) base[int(random() * 4) + 1] substr(read, at + 2)
        }
        print ">" n "\n" read
    }
}
