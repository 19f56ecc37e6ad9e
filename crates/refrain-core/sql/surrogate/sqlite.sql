-- A surrogate key as one expression. SQLite has no hash functions, so this is SHA-256 in its arithmetic.
-- `:parts` are rows of the places and values of the natural key, which may be columns of the statement around it; `:text`
-- makes a value a text. A row of `sha` is a round, and step 64 adds a block up: the message and where its next word is, the
-- constant of the round, the last 16 words of the schedule, the working variables, and the hash so far.
-- Shifts, `&` and `|` have one rank and go from left to right, after `+` and `-`: `x << 32 | x >> n` is a rotation. `x ^ y`
-- is `(x | y) - (x & y)`, and the place of a digit among `123456789ABCDEF` is its value.
(with recursive
part (place, value) as (values :parts),
spelled (place, value) as (
    select place, :text
    from part
),
encoded (hex) as (
    select '00000014' || hex('refrain/v1/surrogate') || printf('%08X', count(*) over everything) || group_concat(
        case when value is null then '00' else '01' || printf('%08X', length(hex(value)) / 2) || hex(value) end, ''
    ) over everything
    from spelled
    window everything as (order by place rows between unbounded preceding and unbounded following)
    limit 1
),
padded (hex, blocks) as (
    select hex || '80' || hex(zeroblob((119 - length(hex) / 2 % 64) % 64)) || printf('%016X', length(hex) * 4),
        (length(hex) / 2 + 8) / 64 + 1
    from encoded
),
constants (list) as (
    values ('[1116352408, 1899447441, 3049323471, 3921009573, 961987163, 1508970993, 2453635748, 2870763221,
        3624381080, 310598401, 607225278, 1426881987, 1925078388, 2162078206, 2614888103, 3248222580,
        3835390401, 4022224774, 264347078, 604807628, 770255983, 1249150122, 1555081692, 1996064986,
        2554220882, 2821834349, 2952996808, 3210313671, 3336571891, 3584528711, 113926993, 338241895,
        666307205, 773529912, 1294757372, 1396182291, 1695183700, 1986661051, 2177026350, 2456956037,
        2730485921, 2820302411, 3259730800, 3345764771, 3516065817, 3600352804, 4094571909, 275423344,
        430227734, 506948616, 659060556, 883997877, 958139571, 1322822218, 1537002063, 1747873779,
        1955562222, 2024104815, 2227730452, 2361852424, 2428436474, 2756734187, 3204031479, 3329325298]')
),
sha (blocks, t, m, at, k, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15, w16,
    a, b, c, d, e, f, g, h, h0, h1, h2, h3, h4, h5, h6, h7) as (
    select blocks + 1, 64, hex, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        1779033703, 3144134277, 1013904242, 2773480762, 1359893119, 2600822924, 528734635, 1541459225
    from padded
    union all
    select blocks - t / 64, (t + 1) % 65, m, at + 8 * (t < 15 or t = 64), list ->> ((t + 1) % 65),
        w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15, w16,
        case when t < 15 or t = 64 then
            (instr('123456789ABCDEF', substr(m, at, 1)) << 28) | (instr('123456789ABCDEF', substr(m, at + 1, 1)) << 24)
            | (instr('123456789ABCDEF', substr(m, at + 2, 1)) << 20)
            | (instr('123456789ABCDEF', substr(m, at + 3, 1)) << 16)
            | (instr('123456789ABCDEF', substr(m, at + 4, 1)) << 12) | (instr('123456789ABCDEF', substr(m, at + 5, 1)) << 8)
            | (instr('123456789ABCDEF', substr(m, at + 6, 1)) << 4) | (instr('123456789ABCDEF', substr(m, at + 7, 1)))
        else w1 + w10
            + ((((w2 << 32 | w2 >> 7) | (w2 << 32 | w2 >> 18)) - ((w2 << 32 | w2 >> 7) & (w2 << 32 | w2 >> 18)) | (w2 >> 3))
                - (((w2 << 32 | w2 >> 7) | (w2 << 32 | w2 >> 18))
                    - ((w2 << 32 | w2 >> 7) & (w2 << 32 | w2 >> 18)) & (w2 >> 3)) & 0xffffffff)
            + ((((w15 << 32 | w15 >> 17) | (w15 << 32 | w15 >> 19))
                - ((w15 << 32 | w15 >> 17) & (w15 << 32 | w15 >> 19)) | (w15 >> 10))
                - (((w15 << 32 | w15 >> 17) | (w15 << 32 | w15 >> 19))
                    - ((w15 << 32 | w15 >> 17) & (w15 << 32 | w15 >> 19)) & (w15 >> 10)) & 0xffffffff)
            & 0xffffffff end,
        case t when 64 then a + h0 else h + k + w16 + ((e & f) | (~e & g))
            + ((((e << 32 | e >> 6) | (e << 32 | e >> 11))
                - ((e << 32 | e >> 6) & (e << 32 | e >> 11)) | (e << 32 | e >> 25))
                - (((e << 32 | e >> 6) | (e << 32 | e >> 11))
                    - ((e << 32 | e >> 6) & (e << 32 | e >> 11)) & (e << 32 | e >> 25)) & 0xffffffff)
            + ((a & b) | (a & c) | (b & c))
            + ((((a << 32 | a >> 2) | (a << 32 | a >> 13))
                - ((a << 32 | a >> 2) & (a << 32 | a >> 13)) | (a << 32 | a >> 22))
                - (((a << 32 | a >> 2) | (a << 32 | a >> 13))
                    - ((a << 32 | a >> 2) & (a << 32 | a >> 13)) & (a << 32 | a >> 22)) & 0xffffffff) end & 0xffffffff,
        case t when 64 then b + h1 else a end & 0xffffffff,
        case t when 64 then c + h2 else b end & 0xffffffff,
        case t when 64 then d + h3 else c end & 0xffffffff,
        case t when 64 then e + h4 else d + h + k + w16 + ((e & f) | (~e & g))
            + ((((e << 32 | e >> 6) | (e << 32 | e >> 11))
                - ((e << 32 | e >> 6) & (e << 32 | e >> 11)) | (e << 32 | e >> 25))
                - (((e << 32 | e >> 6) | (e << 32 | e >> 11))
                    - ((e << 32 | e >> 6) & (e << 32 | e >> 11)) & (e << 32 | e >> 25)) & 0xffffffff) end & 0xffffffff,
        case t when 64 then f + h5 else e end & 0xffffffff,
        case t when 64 then g + h6 else f end & 0xffffffff,
        case t when 64 then h + h7 else g end & 0xffffffff,
        case t when 64 then h0 + a else h0 end & 0xffffffff,
        case t when 64 then h1 + b else h1 end & 0xffffffff,
        case t when 64 then h2 + c else h2 end & 0xffffffff,
        case t when 64 then h3 + d else h3 end & 0xffffffff,
        case t when 64 then h4 + e else h4 end & 0xffffffff,
        case t when 64 then h5 + f else h5 end & 0xffffffff,
        case t when 64 then h6 + g else h6 end & 0xffffffff,
        case t when 64 then h7 + h else h7 end & 0xffffffff
    from sha, constants
    where blocks > 0
)
select printf('%08x-%04x-8%03x-%04x-%04x%08x',
    a, b >> 16, b & 4095, (c >> 16) & 16383 | 32768, c & 65535, d)
from sha
where blocks = 0)
