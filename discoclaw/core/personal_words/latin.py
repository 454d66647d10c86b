"""Words that show what a text is about: further languages written in Latin letters. Data only."""

LATIN: dict[str, dict[str, str]] = {
    "dutch": {
        "health": """
    dokter- huisarts- tandarts- de_arts -medicijn- medicatie- pillen ziek -ziekte- ziekenhuis- zieken
    -zwanger- miskraam- kanker- tumor- geopereerd- geopereerd_aan therapie- therapeut- psychisch-
    angststoornis- paniekaanval- slapeloos- gehandicapt- rolstoel- verslaafd_aan verslaving- alcoholist-
    vaccin- bloeddruk- hartaanval- hartinfarct- beroerte- zelfmoord- voorgeschreven_door gediagnosticeerd-
    griep hoofdpijn- rugpijn- kiespijn arbeidsongeschikt- overspannen ziekteverlof psycholoog psychologe
    psychologen
    """,
        "family": """
    mijn_vrouw zijn_vrouw mijn_man haar_man echtgeno- getrouwd- huwelijk- verloofd- is_gescheiden
    ben_gescheiden echtscheid- mijn_vriendin zijn_vriendin mijn_vriend haar_vriend moeder? moeders vaders
    ouders? zoon zoontje- dochter? dochters dochtertje- kinderen? kinderopvang- een_kind mijn_kind hun_kind
    zijn_kind haar_kind kindje- broer? broers broertje- mijn_zus zijn_zus haar_zus zusje- zussen
    grootmoeder- grootvader- grootouders- kleinkind- kleinzoon- kleindochter- mijn_oom zijn_oom haar_oom
    mijn_nicht zijn_nicht neefje- nichtje- schoonmoeder- schoonvader- schoonouders- schoonzus- schoonbroer-
    gezin weduwe weduwnaar tweeling- ouderschapsverlof mijn_vader zijn_vader haar_vader hun_vader zijn_zonen
    mijn_zonen twee_zonen mijn_tante zijn_tante haar_tante mijn_opa zijn_opa mijn_oma zijn_oma haar_opa
    haar_oma
    """,
        "religion": """
    katholiek- protestants- gereformeerd- christelijk- christenen moslim- joods- jood joden kerk kerkdienst-
    moskee- synagoge- bidden bidt gebed- gedoopt gelovig- doopsel de_koran
    """,
        "money": """
    salaris- loonstrook- mijn_loon zijn_loon haar_loon schulden lening- hypotheek- inkomen inkomens
    belastingaangifte- belastingschuld- belastingdienst bankrekening- spaargeld- spaarrekening- failliet-
    pensioen- uitkering- bijstandsuitkering alimentatie- erfenis- verdient_per geldzorgen huurachterstand-
    schuldhulp- een_schuld
    """,
        "whereabouts": """
    adres? huisadres- woonadres- -straat huisnummer- postcode? in_het_hotel in_een_hotel hotelkamer-
    op_vakantie vakantie- vlucht_naar vliegt_naar vlieg_naar op_schiphol op_de_luchthaven alleen_thuis
    niet_thuis op_reis in_het_buitenland momenteel_in? is_nu_in? logeert-
    """,
        "politics": "stemt_op stemde_op verkiezing- vakbond- vvd pvda pvv cda groenlinks",
        "sexuality": "homo homoseksue- lesbisch- biseksue- seksue- transgender-",
        "papers": """
    paspoort- nationaliteit- verblijfsvergunning- bsn asiel- vluchteling- rijbewijs- staatsburger-
    """,
        "loosely": """
    gezondheid- woont woon wonen verhuis- reis- stad huis thuis geboren bank- partner- vriend- belasting-
    familie- geloof hotel-
    """,
    },
    "swedish": {
        "health": """
    läkare- läkar- tandläk- -medicin- tabletter piller sjuk -sjukdom- sjukhus- sjukskriv- sjuka missfall-
    cancer- tumör- opererad- opererades terapi- terapeut- psykisk- sömnlös- funktionsnedsätt- funktionshind-
    rullstol- alkoholis- alkoholist- vaccin- blodtryck- hjärtinfarkt- självmord- diagnostiserad- utbränd-
    huvudvärk- ryggont förkyld- influensa- vårdcentral- barnmorsk- tandvärk- gravid gravida graviditet-
    ångest ångesten ångestsyndrom- ångestproblem psykolog psykologen psykologer
    """,
        "family": """
    min_fru hans_fru hustru- min_man hennes_man min_sambo hans_sambo hennes_sambo är_gift gift_med gifta_sig
    gifte_sig bröllop- förlovad- skilsmäss- frånskild- är_skild flickvän- pojkvän- pappa- min_mor hans_mor
    hennes_mor mormor- morfar- farmor- farfar- förälder? föräldrar? föräldraled- min_son hans_son hennes_son
    sonen dotter? dottern? döttrar ett_barn mitt_barn två_barn tre_barn har_barn våra_barn barnen? barnbarn-
    dagis bebis- min_bror hans_bror hennes_bror lillebror storebror bröder syster? systrar lillasyster
    storasyster syskon- moster morbror farbror kusin- svärmor- svärfar- svärföräld- familj? familjen?
    familjeled- änka änkling tvilling- två_söner mina_söner sönerna mamma mammas
    """,
        "religion": """
    katolik- katolsk- kristna kristendom- judisk- kyrka kyrkan moské- synagog- gudstjänst- troende döpt
    frikyrk- ber_till bönemöte är_kristen
    """,
        "money": """
    lönen löner lönesamtal- lönespec- skuld? skulder? skuldsatt- bolån- banklån- lånat_pengar inkomst-
    skatteverk- deklarera- skatteskuld- restskatt bankkonto- sparpengar- sparkonto pension- hyran a_kassa
    bostadsbidrag- försörjningsstöd kronofogde- arvet_efter min_lön hans_lön hennes_lön i_lön i_konkurs
    konkursen
    """,
        "whereabouts": """
    adress? adressen? hemadress- bostadsadress- postnummer? på_hotell hotellrum- på_semester flyg_till
    flyger_till flyget_till på_flygplatsen ensam_hemma inte_hemma bortrest- utomlands på_resa på_tjänsteresa
    just_nu_i? är_just_nu gatan storgatan kungsgatan drottninggatan vasagatan har_semester semestern
    semesterresa
    """,
        "politics": "röstar röstade sverigedemokrat- socialdemokrat- moderaterna fackförening- fackligt",
        "sexuality": "lesbisk- bisexuell- homosexuell- sexuell- är_bög",
        "papers": "passet personnummer- medborgar- uppehållstillstånd- asyl- flykting- körkort-",
        "loosely": """
    hälsa hälso- bor bodde flytta- resa reser stad staden hemma hus född bank- partner skatt- hotell-
    """,
    },
    "polish": {
        "health": """
    lekarz- lekark- lekarst- lekarsk- leki leków lekami dentyst- terapi- terapeut- chorob- choruj- chory
    choruję ciąża ciąży ciążę poroni- aborcj- rakiem nowotw- szpital- zoperowan- po_operacji operację_serca
    tabletk- na_receptę receptę_na lękow- bezsenn- niepełnosprawn- wózek_inwalidzki wózku_inwalidzkim
    alkoholik- alkoholiczk- szczepie- zaszczep- nadciśnien- ciśnienie_krwi zwolnieniu_lekarskim
    zdrowie_psychiczne problemy_zdrowotne cukrzyc- padaczk- zawał- udar samobój- przeziębi- uczulen-
    uczulon- grypę grypa psychologa psychologiem psychologowi ma_raka na_raka raka_piersi jest_chora
    """,
        "family": """
    moja_żona moją_żonę mojej_żony jego_żona jego_żony jego_żonę ma_żonę z_żoną mam_żonę żonat- mąż męża
    mężem mężowi zamężn- rozwod- rozwied- rozwodz- ślub- małżeń- małżon- narzeczon- moja_dziewczyna
    jego_dziewczyna mój_chłopak jej_chłopak matka? matki? matkę? matką? ojciec? ojca? ojcem mój_tata
    rodzice? rodziców? rodzicami syna synem synów mój_syn jego_syn córka córki córkę córką dziecko? dziecka?
    dzieci? dzieckiem brata bratem mój_brat jego_brat jej_brat siostra? siostry? siostrę? babci- dziadek
    dziadk- wnuk wnuki wnuczk- ciotk- ciocia wujek kuzyn- teści- teściow- rodzina? rodzinie rodziną rodziny?
    bliźniak- bliźnięt- wdowa wdowiec przedszkol-
    """,
        "religion": """
    katoli- ewangelick- protestan- muzułm- chrześcij- żydem żydów żydow- kościo- kościel- meczet- synagog-
    modli- msza mszę mszy chrzest chrzci- ochrzczon- bierzmow- wierząc- ateist- buddyst- wyznani-
    """,
        "money": """
    pensja pensję pensji wynagrodz- zarabi- zarobk- długów zadłuż- ma_długi mam_długi długami kredyt-
    pożyczk- hipotek- hipotecz- dochody dochodów podatk- podatek konto_bankowe konta_bankowego oszczędności
    bankruct- zbankrut- emerytur- zasiłek zasiłk- czynsz- spadek_po komornik- alimenty
    """,
        "whereabouts": """
    adres? adres_zamieszkania mój_adres? ulica ulicy kod_pocztowy? w_hotelu pokój_hotelowy na_wakacjach
    na_urlopie urlop- lot_do leci_do lecę_do na_lotnisku sam_w_domu sama_w_domu za_granicą w_podróży
    wyjechał_do wyjechała_do będzie_w? przebywa_w? aktualnie_w? jest_teraz_w? w_delegacji
    """,
        "politics": "głosow- głosuj- zagłosow- wybory wyborc- związek_zawodowy pis_u konfederacj-",
        "sexuality": "gej gejem lesbijk- biseksual- homoseksual- seksual- transpłciow-",
        "papers": "paszport- obywatel- dowód_osobisty pesel wiza wizę azyl- uchodź- prawo_jazdy",
        "loosely": """
    zdrowi- mieszka- przeprowadz- podróż- miasto mieście domu domem urodzi- bank- wakacj- hotel- wiara wiarę
    partner- dług- dziewczyn- chłopak- doktor-
    """,
    },
    "turkish": {
        "health": """
    doktoru- doktorum- hekim- ilaç- ilac- hastane- hastalı- hastayı- hastalan- hamile- gebeli- kanser-
    ameliyat- depresyon- terapi- terapist- psikolog- diyabet- tansiyon- anksiyete- kaygı_bozukluğu
    panik_atak- aşı_oldu- tekerlekli_sandalye- reçete- kürtaj- düşük_yaptı- alkolik- tedavi_gör- uykusuzluk
    tüp_bebek intihar- kalp_krizi ruh_sağlığı grip_oldu- hap_kullan- doktora_gi- dişçiye dişçide dişçim
    engelli engelliyim engelliler dehb
    """,
        "family": """
    eşimle eşimin eşimden eşime eşi_ile eşiyle benim_eşim karımla karımın kocası- annem- annesi- babam-
    babası- çocuğu- çocuklar- çocuk? oğlum- oğlu kızım- kız_kardeş- kardeşi- erkek_kardeş- ablam- ablası-
    abisi abim dedem dedesi anneanne- babaanne- büyükanne- büyükbaba- teyze- amcam amcası dayım dayısı
    kuzen- yeğen- ailem- ailesi- ebeveyn? evlendi- evlenecek- evleniyor- evliyim evlidir evlilik- evli
    nişanlı- sevgilim- sevgilisi- düğün- kayınvalide- kayınpeder- bebeği- bebeğ- bebek_bekl- ikizler-
    doğum_izn- boşandı- boşanma- boşanıyor- boşanmış- karısı karısını karısının karısına karısıyla kocam
    kocamın kocamla kocama kocamı ailede ailece kızının kızına kızını
    """,
        "religion": """
    müslüman- hristiyan- hıristiyan- yahudi- camiye camide kilise- namaz- oruç- dua_ed- alevi- sünni-
    dindar- inançlı- ibadet- kuran_oku- hacca
    """,
        "money": """
    maaşı- borçlu- borcu- borçlar- kredisi- kredi_borc- kredi_kart- ipotek- geliri- banka_hesab- birikimi-
    vergi_borc- iflas- emekli- kirası- kirayı- işsizlik_maaş- para_sıkıntı- mirası_kal-
    """,
        "whereabouts": """
    adresi? adresim? ev_adres- sokağı- sokakta caddesi- mahallesi- posta_kodu? otelde otel_oda- otele
    tatilde tatile uçuşu- uçağı- uçakta uçacak- havaalan- havaliman- evde_yalnız- evde_tek yurt_dışında
    yurtdışında seyahatte iş_gezisinde şehir_dışında şu_an_evde uçakla
    """,
        "politics": "siyas- seçimler- oy_ver- akp chp mhp hdp sendika-",
        "sexuality": "eşcinsel- gey lezbiyen- biseksüel- cinsel-",
        "papers": "pasaport- vatandaş- kimlik_numara- kimlik_kart- ikamet- sığınma- mülteci- vizesi ehliyet-",
        "loosely": """
    sağlı- yaşıyor- oturuyor- taşın- şehir- evi evim evde banka- doğdu- tatil- otel- doktor- eşi eşim kızı
    borç- inanç- gezisi geziye
    """,
    },
    "indonesian": {
        "health": """
    dokter- obat obatnya minum_obat obat_tidur obat_penenang sakit rumah_sakit penyakit- hamil kehamilan-
    keguguran- aborsi- kanker- tumor- dioperasi operasi_jantung operasi_usus terapi- terapis- kecemasan-
    gangguan_mental gangguan_panik insomnia difabel- disabilitas- kursi_roda alkoholik- kecanduan_alkohol
    vaksin- tekanan_darah darah_tinggi serangan_jantung bunuh_diri kesehatan_mental resep_dokter demam tbc
    kencing_manis psikolog psikolognya
    """,
        "family": """
    istri istriku istrinya suami suamiku suaminya ibu_saya ibuku ibunya ibu_mertua ayah ayahku ayahnya
    bapak_saya bapaknya anak? anakku anaknya anak_saya anak_laki anak_perempuan kakak- adik adikku adiknya
    adik_laki nenek- kakek- pacarku pacarnya pacar_saya pacar tunangan- menikah pernikahan- nikah cerai
    bercerai perceraian- keluarga? keluargaku keluarganya orang_tua? orangtua- mertua- pamanku paman_saya
    bibi_saya keponakan- sepupu- janda bayi? bayinya kembar cuti_melahirkan seorang_duda putrinya putranya
    putri_saya putra_saya
    """,
        "religion": """
    agama- katolik- masjid- gereja- shalat sholat puasa- berdoa jemaat ibadah- beribadah naik_haji umrah
    pengajian- mualaf orang_kristen beragama menunaikan_salat salat_jumat
    """,
        "money": """
    gaji- gajinya bergaji utang utangnya berutang hutang- pinjaman_bank pinjaman_online cicilan- kpr
    penghasilan- pendapatan_saya pendapatannya rekening_bank tabungan- bangkrut pensiun- uang_sewa
    warisan_dari kartu_kredit
    """,
        "whereabouts": """
    alamat? alamat_rumah alamatku? alamatnya? tinggal_di_jalan kode_pos? di_hotel kamar_hotel liburan-
    penerbangan_ke terbang_ke di_bandara sendirian_di_rumah sendiri_di_rumah sedang_berada_di sedang_di
    akan_berada_di? di_luar_kota di_luar_negeri menginap-
    """,
        "politics": "pemilu- memilih_partai partai_politik pendukung_prabowo pendukung_jokowi serikat_buruh",
        "sexuality": "gay lesbian- biseksual- seksual- orientasi_seksual transpuan",
        "papers": "paspor- kewarganegaraan- ktp nik_saya izin_tinggal suaka pengungsi-",
        "loosely": """
    kesehatan- tinggal pindah- perjalanan- kota rumah lahir bank- ibu bapak pajak- pinjaman- hotel- iman
    obat-
    """,
    },
    "vietnamese": {
        "health": """
    bác_sĩ nha_sĩ uống_thuốc thuốc_ngủ thuốc_an_thần thuốc_tránh_thai thuốc_huyết_áp đơn_thuốc bệnh
    bệnh_viện mang_thai có_thai sảy_thai phá_thai ung_thư trầm_cảm tiểu_đường dị_ứng phẫu_thuật lo_âu
    mất_ngủ huyết_áp khuyết_tật xe_lăn nghiện_rượu tiêm_vắc nhồi_máu đột_quỵ tự_tử tâm_thần trị_liệu
    hen_suyễn động_kinh bị_ốm bị_cúm sức_khỏe_tâm_thần
    """,
        "family": """
    vợ_tôi vợ_mình vợ_anh vợ_chồng chồng_tôi chồng_mình chồng_chị mẹ_tôi mẹ_mình bố_tôi bố_mình bố_mẹ cha_mẹ
    ba_mẹ con_trai con_gái con_tôi em_trai em_gái anh_trai chị_gái bà_nội ông_nội bà_ngoại ông_ngoại
    gia_đình bạn_gái bạn_trai kết_hôn ly_hôn ly_dị đám_cưới đính_hôn mẹ_chồng mẹ_vợ bố_chồng bố_vợ cháu_trai
    cháu_gái có_con em_bé sinh_đôi của_vợ của_chồng của_mẹ của_bố một_con hai_con ba_con
    """,
        "religion": """
    phật_giáo đạo_phật công_giáo thiên_chúa tin_lành hồi_giáo cầu_nguyện tôn_giáo cao_đài nhà_thờ đi_lễ
    đi_chùa rửa_tội
    """,
        "money": """
    tiền_lương mức_lương lương_tháng lương_của nợ_nần mắc_nợ khoản_nợ đang_nợ vay_tiền vay_ngân_hàng
    thế_chấp tài_khoản_ngân_hàng tiền_tiết_kiệm thu_nhập phá_sản lương_hưu tiền_thuê_nhà thừa_kế_từ
    thuế_thu_nhập
    """,
        "whereabouts": """
    địa_chỉ? số_nhà ở_khách_sạn trong_khách_sạn phòng_khách_sạn chuyến_bay bay_đến bay_tới đi_nghỉ kỳ_nghỉ
    đi_du_lịch ở_nhà_một_mình một_mình_ở_nhà sân_bay đang_ở sẽ_ở đi_công_tác ở_nước_ngoài
    """,
        "politics": "chính_trị bầu_cử bỏ_phiếu đảng_viên",
        "sexuality": "đồng_tính song_tính chuyển_giới tình_dục",
        "papers": "hộ_chiếu quốc_tịch căn_cước thị_thực tị_nạn chứng_minh_nhân_dân",
        "loosely": """
    sức_khỏe sống_ở sống_tại chuyển_nhà thành_phố du_lịch ngân_hàng sinh_ra khách_sạn con_cái tiết_kiệm
    """,
    },
}
